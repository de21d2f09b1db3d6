// The furthest plane: air, the sun or the moon, stars, a few clouds. It fills the whole stage.
import { type Colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { circle, fade, short } from './drawing.js'
import type { Stage } from './stage.js'

export function drawSky(stage: Stage, random: Random): string {
  const { width, height, palette, horizon } = stage
  const dark = palette.hour === 'night' || stage.place === 'space'
  const air = fade('air', 0, horizon, [
    [0, hex(palette.skyHigh)],
    [0.55, hex(mix(palette.skyHigh, palette.skyLow, 0.55))],
    [1, hex(palette.skyLow)],
  ])
  const filled = `<rect x="-20" y="-20" width="${short(width + 40)}" height="${short(height + 40)}" fill="url(#air)"/>`
  const stars = dark ? drawStars(stage, random) : ''
  const clouds = stage.place === 'space' || stage.place === 'studio' ? '' : drawClouds(stage, random)
  return `${air}${filled}${stars}${drawLight(stage, random)}${clouds}`
}

function drawLight({ width, horizon, palette, place }: Stage, random: Random): string {
  const x = between(random, 0.18, 0.82) * width
  const low = palette.hour === 'dusk' || palette.hour === 'dawn'
  const y = horizon * (low ? between(random, 0.62, 0.86) : between(random, 0.2, 0.42))
  const radius = place === 'space' ? between(random, 120, 230) : between(random, 52, 100)
  const strength = palette.hour === 'grey' ? 0.25 : 0.55
  const shade = hex(palette.light)
  const glow =
    `<radialGradient id="glow"><stop offset="0" stop-color="${shade}" stop-opacity="${strength}"/>` +
    `<stop offset="1" stop-color="${shade}" stop-opacity="0"/></radialGradient>`
  const body =
    place === 'space'
      ? drawPlanet(x, y, radius, palette.accent, palette.ink)
      : circle(x, y, radius, shade, 0.94)
  return `${glow}${circle(x, y, radius * 4.2, 'url(#glow)')}${body}`
}

function drawPlanet(x: number, y: number, radius: number, shade: Colour, ink: Colour): string {
  const rings =
    `<ellipse cx="${short(x)}" cy="${short(y)}" rx="${short(radius * 1.75)}" ry="${short(radius * 0.34)}" fill="none" ` +
    `stroke="${hex(mix(shade, ink, 0.25))}" stroke-width="${short(radius * 0.11)}" stroke-opacity="0.8" ` +
    `transform="rotate(-16 ${short(x)} ${short(y)})"/>`
  const night = `<clipPath id="disc"><circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}"/></clipPath>`
  const shadow = `<g clip-path="url(#disc)">${circle(x + radius * 0.5, y + radius * 0.35, radius * 1.1, hex(ink), 0.4)}</g>`
  return `${rings}${circle(x, y, radius, hex(shade))}${night}${shadow}`
}

function drawStars({ width, horizon, palette }: Stage, random: Random): string {
  const count = Math.round((width * horizon) / 9000)
  const shade = hex(palette.light)
  return Array.from({ length: count }, () =>
    circle(
      random() * width,
      random() ** 1.3 * horizon,
      between(random, 0.8, 2.6),
      shade,
      Math.ceil(random() * 8) / 10,
    ),
  ).join('')
}

function drawClouds({ width, horizon, palette }: Stage, random: Random): string {
  const shade = hex(mix(palette.skyLow, palette.light, 0.55))
  const count = 2 + Math.floor(random() * 4)
  return Array.from({ length: count }, () => {
    const x = random() * width
    const y = between(random, 0.1, 0.62) * horizon
    const length = between(random, 160, 420)
    return Array.from({ length: 3 }, (_, index) => {
      const part = length * (1 - index * 0.27)
      const left = x - part / 2 + between(random, -50, 50)
      return (
        `<rect x="${short(left)}" y="${short(y - index * 17)}" width="${short(part)}" height="26" rx="13" ` +
        `fill="${shade}" fill-opacity="0.32"/>`
      )
    }).join('')
  }).join('')
}
