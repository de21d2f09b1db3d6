// Draws the furthest plane, which fills the whole stage: air, the sun or the moon with its glow, stars and clouds. Also
// draws the nearest plane: rain, snow, mist, and falling leaves and petals.
import { colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import type { Location } from '../vocabulary.js'
import { cloud } from './land-shapes.js'
import { below, circle, fade, path, type Stage, svg } from './stage.js'

/** Places where neither the sun nor clouds are visible. */
const INDOORS: ReadonlySet<Location> = new Set(['table', 'studio', 'underwater', 'abstract', 'card'])

export function drawSky(stage: Stage, random: Random): string {
  const { width, height, palette, horizon, place, weather } = stage
  const [zenith, high, low, edge] = palette.sky
  const air = fade('air', 0, horizon * 1.02, [
    [0, hex(zenith)],
    [0.4, hex(high)],
    [0.75, hex(low)],
    [1, hex(edge)],
  ])
  const filled = svg`<rect x="-20" y="-20" width="${width + 40}" height="${height + 40}" fill="url(#air)"/>`
  const stars =
    (palette.hour === 'night' && !INDOORS.has(place)) || place === 'space' ? drawStars(stage, random) : ''
  const hidden = weather === 'storm' || weather === 'rain' || weather === 'fog' || weather === 'snow'
  const lights = INDOORS.has(place) ? '' : drawLight(stage, hidden) + drawSpectacle(stage, random)
  return air + filled + stars + lights + drawClouds(stage, random)
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
    // Clouds in rows: lower clouds are smaller, and their colour is nearer to the colour of the horizon.
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

function drawSpectacle(stage: Stage, random: Random): string {
  if (stage.skyEvent === 'aurora') return aurora(stage, random)
  if (stage.skyEvent === 'fireworks') return fireworks(stage, random)
  return stage.skyEvent === 'rainbow' ? rainbow(stage) : ''
}

/** Draws curtains of light: bright along the lower edge, fading upwards from green to violet. */
function aurora({ width, horizon }: Stage, random: Random): string {
  const curtains = [0.5, 0.66, 0.82].map((share, index) => {
    const phase = random() * 6.28
    const steps = 36
    const tall = horizon * between(random, 0.34, 0.5)
    const hem = (x: number) =>
      horizon *
        (share +
          0.09 * Math.sin((x / width) * 5.2 + phase) +
          0.035 * Math.sin((x / width) * 13 + 2 * phase)) -
      60
    const columns = Array.from({ length: steps }, (_, step) => {
      const left = -20 + ((width + 40) * step) / steps
      const right = -20 + ((width + 40) * (step + 1)) / steps
      const strength = (0.3 + 0.5 * random()) * (1 - 0.16 * index)
      const top = tall * between(random, 0.7, 1.15)
      const data =
        svg`M${left} ${hem(left)}L${right} ${hem(right)}L${right} ${hem(right) - top}L${left} ${hem(left) - top}` +
        'Z'
      return path(data, 'url(#aurora)', Math.round(strength * 100) / 100)
    })
    return columns.join('')
  })
  return (
    '<linearGradient id="aurora" x1="0" x2="0" y1="1" y2="0"><stop offset="0" stop-color="#7bffb8"' +
    ' stop-opacity="0"/>' +
    '<stop offset=".12" stop-color="#7bffb8" stop-opacity=".62"/><stop offset=".45" stop-color="#35c9a5"' +
    ' stop-opacity=".36"/>' +
    '<stop offset=".75" stop-color="#8a5bd6" stop-opacity=".2"/><stop offset="1" stop-color="#8a5bd6"' +
    ' stop-opacity="0"/></linearGradient>' +
    curtains.join('')
  )
}

function fireworks({ width, horizon, palette, light }: Stage, random: Random): string {
  const shades = [hex(palette.accent), '#ffd166', '#ff6b8a', '#7ee7ff', hex(palette.light)]
  const away = light.side > 0 ? 0.08 : 0.3
  return Array.from({ length: 5 }, (_, burst) => {
    const x = width * (away + (burst + between(random, 0.1, 0.7)) * 0.13)
    const y = horizon * between(random, 0.2, 0.55)
    const reach = between(random, 80, 170)
    const shade = shades[burst] ?? '#ffd166'
    let streaks = ''
    let sparks = ''
    const rays = 26
    for (let ray = 0; ray < rays; ray++) {
      const angle = (6.283 * ray) / rays + random() * 0.12
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
      const far = reach * between(random, 0.7, 1)
      const drop = far * 0.14
      streaks +=
        svg`M${x + cos * far * 0.25} ${y + sin * far * 0.25}` +
        svg`L${x + cos * far - sin * 2.4} ${y + sin * far + cos * 2.4 + drop}` +
        svg`L${x + cos * far + sin * 2.4} ${y + sin * far - cos * 2.4 + drop}Z`
      sparks += circle(x + cos * far, y + sin * far + drop, between(random, 2.4, 5), shade)
    }
    const glow =
      `<radialGradient id="burst-${burst}"><stop offset="0" stop-color="${shade}" stop-opacity=".45"/>` +
      `<stop offset="1" stop-color="${shade}" stop-opacity="0"/></radialGradient>` +
      circle(x, y, reach * 1.3, `url(#burst-${burst})`)
    return glow + path(streaks, shade, 0.7) + sparks + circle(x, y, 7, hex(palette.paper))
  }).join('')
}

/** Draws a rainbow opposite the sun. */
function rainbow({ width, horizon, light }: Stage): string {
  const x = width * (light.side > 0 ? 0.3 : 0.7)
  const outer = Math.min(horizon * 0.88, width * 0.5)
  const band = outer * 0.032
  return ['#e8505b', '#f59a3c', '#ffe066', '#5cc37a', '#4c9be8', '#7a63c9']
    .map((shade, index) => {
      const radius = outer - index * band
      const edge = index === 0 || index === 5 ? 0.3 : 0.48
      return (
        svg`<circle cx="${x}" cy="${horizon}" r="${radius}" fill="none" stroke="${shade}"` +
        svg` stroke-opacity="${String(edge)}" stroke-width="${band}"/>`
      )
    })
    .join('')
}

export function drawVeil(stage: Stage, random: Random): string {
  const { weather, season, place, palette, width, height } = stage
  if (
    place === 'table' ||
    place === 'studio' ||
    place === 'space' ||
    place === 'abstract' ||
    place === 'underwater'
  )
    return ''
  if (weather === 'fog') return mist(stage)
  if (weather === 'rain' || weather === 'storm') return rain(stage, random)
  if (weather === 'snow' || season === 'winter') {
    const shade = hex(palette.paper)
    return Array.from({ length: weather === 'snow' ? 240 : 90 }, () => {
      const nearness = random() ** 2
      return circle(
        random() * width,
        random() * height,
        1.8 + nearness * 6.5,
        shade,
        Math.ceil((0.85 - nearness * 0.5) * 10) / 10,
      )
    }).join('')
  }
  if (season === 'autumn' || season === 'spring') return leaves(stage, random)
  return ''
}

function rain({ palette, width, height, weather }: Stage, random: Random): string {
  const shade = hex(mix(palette.sky[3], palette.paper, 0.5))
  let data = ''
  const lean = weather === 'storm' ? 0.34 : 0.16
  for (let drop = 0; drop < 210; drop++) {
    const long = between(random, 26, 86)
    const x = random() * width * 1.1
    const y = random() * height - long
    data += svg`M${x} ${y}l${-long * lean} ${long}l2.2 .4l${long * lean - 0.6} ${-long}Z`
  }
  const bolt =
    weather === 'storm'
      ? lightning(width * between(random, 0.2, 0.8), height * 0.46, random, hex(palette.paper))
      : ''
  return bolt + path(data, shade, 0.42)
}

function lightning(x: number, foot: number, random: Random, shade: string): string {
  let at = x
  let down = ''
  let up = ''
  for (let step = 0; step <= 9; step++) {
    const y = (foot * step) / 9
    const half = 5 - step * 0.5
    down += svg`${String(step === 0 ? 'M' : 'L')}${at - half} ${y}`
    up = svg`L${at + half} ${y}${String(up)}`
    at += between(random, -42, 42)
  }
  return path(`${down}${up}Z`, shade, 0.92)
}

function mist(stage: Stage): string {
  const { width, height, palette } = stage
  const shade = hex(mix(palette.sky[3], palette.paper, 0.3))
  return [0.02, 0.26, 0.52]
    .map((share, index) => {
      const y = below(stage, share) - 140
      return (
        `<linearGradient id="fog-${index}" x1="0" x2="0" y1="0" y2="1"><stop offset="0" stop-color="${shade}"` +
        ' stop-opacity="0"/>' +
        `<stop offset=".5" stop-color="${shade}" stop-opacity="${0.5 - index * 0.08}"/><stop offset="1"` +
        ` stop-color="${shade}" stop-opacity="0"/></linearGradient>` +
        svg`<rect x="-20" y="${y}" width="${width + 40}" height="${height * 0.34}" fill="url(#fog-${index})"/>`
      )
    })
    .join('')
}

function leaves({ width, height, palette, season }: Stage, random: Random): string {
  const shades = season === 'autumn' ? ['#d9622b', '#e8a33d', '#b5402a'] : ['#f7c6d4', '#ffe3ea', '#f2a4bd']
  return Array.from({ length: 46 }, (_, index) => {
    const size = between(random, 6, 22)
    const [x, y] = [random() * width, random() * height]
    const shade = shades[index % 3] ?? '#fff'
    return (
      svg`<path d="M0 -1Q.8 -.2 0 1Q-.8 -.2 0 -1Z" fill="${shade}"` +
      svg` fill-opacity="${String(palette.hour === 'night' ? 0.4 : 0.85)}"` +
      svg` transform="translate(${x} ${y}) rotate(${String(Math.round(random() * 360))}) scale(${size * 0.8} ${size})"/>`
    )
  }).join('')
}
