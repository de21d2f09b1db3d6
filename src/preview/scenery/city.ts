// Rows of houses along a street. After dark their windows are lit, and a wet street reflects them.
import { type Colour, colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { box, fade, ground, path, short } from './drawing.js'
import { level } from './sea.js'
import { below, type Land, type Stage } from './stage.js'

export function city(stage: Stage, random: Random): Land {
  const { palette, height, scale } = stage
  const street = below(stage, 0.34)
  const dark = palette.hour === 'night' || palette.hour === 'dusk'
  const asphalt = mix(palette.near, palette.front, dark ? 0.5 : 0.15)
  const floor =
    fade('street', street, height, [
      [0, hex(mix(asphalt, palette.sky[3], 0.3))],
      [0.3, hex(asphalt)],
      [1, hex(mix(asphalt, palette.front, 0.7))],
    ]) + ground(level(stage, street), height + 40, 'url(#street)')
  return {
    far: houses(stage, random, below(stage, 0.1), [170, 430], palette.far, 0.1, 46),
    middle: houses(stage, random, street + 4, [170, 360], palette.middle, dark ? 0.42 : 0.3, 84),
    ground:
      floor +
      lanes(stage, street) +
      (dark || stage.weather === 'rain' ? gleams(stage, random, street) : '') +
      lamps(stage, street),
    front:
      box(-20, height * 0.955, stage.width + 40, height * 0.05 + 40, hex(palette.front)) +
      box(-20, height * 0.95, stage.width + 40, 5 * scale, hex(mix(palette.front, palette.light, 0.25))),
  }
}

function houses(
  stage: Stage,
  random: Random,
  foot: number,
  tall: [number, number],
  shade: Colour,
  lit: number,
  breadth: number,
): string {
  const { palette, light, scale, width: across } = stage
  const night = palette.hour === 'night' || palette.hour === 'dusk'
  let drawing = ''
  for (let x = -20; x < across + 20; ) {
    const width = between(random, breadth, breadth * 1.9) * Math.sqrt(scale)
    // Lower houses in front of the light, so that the street opens towards it.
    const gap = Math.min(1, Math.abs(x + width / 2 - light.x) / 360)
    const top = foot - between(random, tall[0], tall[1]) * scale * (0.5 + 0.5 * gap)
    const own = mix(shade, random() < 0.3 ? palette.accent : palette.front, random() * 0.16)
    drawing += box(x, top, width + 1, stage.height + 40 - top, hex(own))
    const edge = light.x > x ? x + width - 5 : x
    drawing += `<rect x="${short(edge)}" y="${short(top)}" width="5" height="${short(foot - top)}" fill="${hex(palette.light)}" fill-opacity=".25"/>`
    drawing += roof(random, x, top, width, own)
    const pane = breadth * 0.14
    for (let row = top + pane * 1.4; row < foot - pane * 2; row += pane * 2.1) {
      for (let column = x + pane; column < x + width - pane * 1.4; column += pane * 1.8) {
        const on = random() < lit
        if (!on && random() < 0.45) continue
        const warm = random() < 0.75 ? colour(0.88, 0.13, 78) : colour(0.85, 0.07, 220)
        drawing += box(
          column,
          row,
          pane * 0.95,
          pane * 1.25,
          hex(on && night ? warm : mix(own, on ? palette.light : palette.front, 0.28)),
        )
      }
    }
    x += width
  }
  return drawing
}

function roof(random: Random, x: number, top: number, width: number, shade: Colour): string {
  const kind = random()
  if (kind < 0.2)
    return path(
      `M${short(x)} ${short(top + 1)}L${short(x + width / 2)} ${short(top - width * 0.4)}L${short(x + width)} ${short(top + 1)}Z`,
      hex(shade),
    )
  if (kind < 0.4) return box(x + width * 0.2, top - 16, width * 0.6, 18, hex(shade))
  if (kind < 0.55) return box(x + width * 0.48, top - 46, width * 0.05, 48, hex(shade))
  return ''
}

function lanes({ width, height, palette, light }: Stage, street: number): string {
  const shade = hex(mix(palette.near, palette.paper, 0.5))
  const middle = width - light.x
  return Array.from({ length: 6 }, (_, index) => {
    const [near, far] = [index / 6, (index + 0.5) / 6].map((share) => share ** 1.7)
    const y = (share = 0) => street + (height - street) * share
    const x = (share = 0) => width / 2 + (middle - width / 2) * 0.25 * (1 - share)
    const half = (share = 0) => 3 + 15 * share
    return path(
      `M${short(x(near) - half(near))} ${short(y(near))}H${short(x(near) + half(near))}L${short(x(far) + half(far))} ${short(y(far))}H${short(x(far) - half(far))}Z`,
      shade,
      0.4,
    )
  }).join('')
}

/** Reflections of the lights on a wet street. */
function gleams({ width, height, palette }: Stage, random: Random, street: number): string {
  return Array.from({ length: 46 }, () => {
    const shade = random() < 0.6 ? colour(0.86, 0.13, 75) : random() < 0.5 ? palette.accent : palette.second
    const y = street + random() ** 1.5 * (height - street) * 0.7
    const long = 30 + random() * 130
    return `<rect x="${short(random() * width)}" y="${short(y)}" width="${short(4 + random() * 10)}" height="${short(long)}" rx="5" fill="${hex(shade)}" fill-opacity=".2"/>`
  }).join('')
}

function lamps(stage: Stage, street: number): string {
  const { width, palette, scale } = stage
  const on = palette.hour === 'night' || palette.hour === 'dusk'
  const glow = `<radialGradient id="lamp"><stop offset="0" stop-color="#ffdf9e" stop-opacity=".75"/><stop offset="1" stop-color="#ffdf9e" stop-opacity="0"/></radialGradient>`
  const shade = hex(palette.front)
  const posts = [0.09, 0.91].map((share) => {
    const x = width * share
    const tall = 300 * scale
    const foot = street + 40
    const head = `<circle cx="${short(x)}" cy="${short(foot - tall)}" r="${short(13 * scale)}" fill="${on ? '#fff0cf' : hex(palette.paper)}"/>`
    const halo = on
      ? `<circle cx="${short(x)}" cy="${short(foot - tall)}" r="${short(120 * scale)}" fill="url(#lamp)"/>`
      : ''
    return (
      halo +
      box(x - 4 * scale, foot - tall, 8 * scale, tall, shade) +
      box(x - 10 * scale, foot - 26 * scale, 20 * scale, 26 * scale, shade) +
      head
    )
  })
  return glow + posts.join('')
}
