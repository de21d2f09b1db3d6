// The furthest plane: air, the sun or the moon with its glow, stars, clouds. It fills the whole stage.
import { colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import type { Location } from '../vocabulary.js'
import { circle, fade, short } from './drawing.js'
import { cloud } from './land-shapes.js'
import { drawSpectacle } from './sky-events.js'
import type { Stage } from './stage.js'

/** Where neither sun nor clouds are seen. */
const INDOORS: ReadonlySet<Location> = new Set(['table', 'studio', 'underwater', 'abstract'])

export function drawSky(stage: Stage, random: Random): string {
  const { width, height, palette, horizon, place, weather } = stage
  const [zenith, high, low, edge] = palette.sky
  const air = fade('air', 0, horizon * 1.02, [
    [0, hex(zenith)],
    [0.4, hex(high)],
    [0.75, hex(low)],
    [1, hex(edge)],
  ])
  const filled = `<rect x="-20" y="-20" width="${short(width + 40)}" height="${short(height + 40)}" fill="url(#air)"/>`
  const stars =
    (palette.hour === 'night' && !INDOORS.has(place)) || place === 'space' ? drawStars(stage, random) : ''
  const hidden = weather === 'storm' || weather === 'rain' || weather === 'fog' || weather === 'snow'
  return `${air}${filled}${stars}${INDOORS.has(place) ? '' : drawLight(stage, hidden) + drawSpectacle(stage, random)}${drawClouds(stage, random)}`
}

function drawLight({ palette, light, scale, place, weather }: Stage, hidden: boolean): string {
  const { x, y } = light
  const low = palette.hour === 'dusk' || palette.hour === 'dawn'
  const radius = (low ? 74 : palette.hour === 'night' ? 58 : 50) * (0.75 + 0.25 * scale)
  const shade = hex(palette.light)
  const strength = palette.hour === 'grey' ? 0.35 : low ? 0.75 : 0.6
  const glow =
    `<radialGradient id="glow"><stop offset="0" stop-color="${shade}" stop-opacity="${strength}"/>` +
    `<stop offset=".3" stop-color="${shade}" stop-opacity="${strength * 0.42}"/>` +
    `<stop offset="1" stop-color="${shade}" stop-opacity="0"/></radialGradient>`
  const halo = circle(x, y, radius * (low ? 8 : 6), 'url(#glow)')
  if (place === 'space' || hidden) return glow + (place === 'space' || weather === 'storm' ? '' : halo)
  if (palette.hour !== 'night') return glow + halo + circle(x, y, radius, shade, 0.96)
  const dark = hex(mix(palette.light, palette.sky[1], 0.22))
  const craters = [
    [-0.3, -0.25, 0.22],
    [0.28, 0.12, 0.16],
    [-0.1, 0.4, 0.13],
  ] as const
  return (
    glow +
    halo +
    circle(x, y, radius, shade) +
    craters.map(([dx, dy, size]) => circle(x + dx * radius, y + dy * radius, size * radius, dark)).join('')
  )
}

function drawStars({ width, horizon, palette, place }: Stage, random: Random): string {
  const depth = place === 'space' ? horizon * 1.5 : horizon
  const count = Math.min(420, Math.round((width * depth) / 4200))
  const shade = hex(colour(0.97, 0.03, palette.light.hue))
  return Array.from({ length: count }, () => {
    const size = random() ** 5
    return circle(
      random() * width,
      random() ** 1.25 * depth,
      0.9 + size * 2.6,
      shade,
      Math.ceil((0.25 + random() * 0.7) * 10) / 10,
    )
  }).join('')
}

function drawClouds(stage: Stage, random: Random): string {
  const { width, horizon, palette, place, weather } = stage
  if (place === 'space' || INDOORS.has(place)) return ''
  const heavy = weather === 'rain' || weather === 'storm' || palette.hour === 'grey'
  const lit = hex(mix(palette.sky[3], palette.light, palette.hour === 'night' ? 0.08 : 0.6))
  const dark = hex(mix(palette.sky[0], palette.ink, weather === 'storm' ? 0.45 : 0.12))
  const count = Math.round((heavy ? 7 : 4) + random() * 3)
  return Array.from({ length: count }, (_, index) => {
    const share = (index + random()) / count
    // Rows: the lower, the smaller and the nearer to the horizon's colour.
    const y = horizon * between(random, heavy ? 0.08 : 0.14, 0.74)
    const nearness = 1 - y / horizon
    const length = (180 + 420 * nearness) * between(random, 0.7, 1.25)
    const x = share * (width + 200) - 100
    const under = heavy ? cloud(x + 14, y + 10, length * 1.1, random, dark, 0.5) : ''
    return (
      under +
      cloud(
        x,
        y,
        length,
        random,
        heavy ? dark : lit,
        palette.hour === 'night' ? 0.22 : heavy ? 0.4 : 0.28 + 0.4 * nearness,
      )
    )
  }).join('')
}
