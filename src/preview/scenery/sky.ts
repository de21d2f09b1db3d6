// Draws the sky behind the land (air, sun or moon, stars, clouds), and the weather in front of the figures.
import { mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { below, box, circle, fade, fill, glow, many, path, type Stage, svg } from './stage.js'

export function drawSky(stage: Stage, random: Random): string {
  const { palette, horizon, place, width, reading } = stage
  const [zenith, high, low, edge] = palette.sky
  const isSpace = place === 'space'
  const stars = palette.hour === 'night' || isSpace ? Math.min(420, (width * horizon) / 4200) : 0
  const events = { aurora, fireworks, rainbow }
  return (
    fade('air', 0, horizon * 1.02, [0, zenith], [0.4, high], [0.75, low], [1, edge]) +
    fill(stage, 'url(#air)') +
    many(stars, () => {
      const [x, y, radius] = [random() * width, random() ** 1.25 * horizon, 0.9 + random() ** 5 * 2.6]
      return circle(x, y, radius, '#f4f6ff', 0.25 + random() * 0.7)
    }) +
    (isSpace || reading.weather === 'storm' ? '' : sunOrMoon(stage)) +
    (reading.skyEvent === undefined ? '' : events[reading.skyEvent](stage, random)) +
    (isSpace ? '' : clouds(stage, random))
  )
}

function sunOrMoon({ palette, light: { x, y }, scale, reading }: Stage): string {
  const isLow = palette.hour === 'dusk' || palette.hour === 'dawn'
  const radius = (isLow ? 74 : 55) * (0.75 + 0.25 * scale)
  const strength = palette.hour === 'grey' ? 0.35 : 0.7
  const halo = glow('glow', x, y, radius * (isLow ? 8 : 6), palette.light, strength)
  if (reading.weather !== undefined) return halo
  const dark = mix(palette.light, palette.sky[1], 0.22)
  const crater = (right: number, down: number, size: number) =>
    circle(x + right * radius, y + down * radius, size * radius, dark)
  const craters = crater(-0.3, -0.25, 0.22) + crater(0.28, 0.12, 0.16) + crater(-0.1, 0.4, 0.13)
  return halo + circle(x, y, radius, palette.light, 0.96) + (palette.hour === 'night' ? craters : '')
}

function clouds({ width, horizon, palette, reading }: Stage, random: Random): string {
  const isHeavy = reading.weather === 'storm' || reading.weather === 'rain' || palette.hour === 'grey'
  const dark = mix(palette.sky[0], palette.ink, reading.weather === 'storm' ? 0.45 : 0.12)
  const shade = isHeavy ? dark : mix(palette.sky[3], palette.light, palette.hour === 'night' ? 0.08 : 0.6)
  const count = Math.round((isHeavy ? 9 : 4) + random() * 3)
  return many(count, (at) => {
    // Lower clouds are smaller and paler, because they are further away.
    const y = horizon * between(random, 0.1, 0.74)
    const nearness = 1 - y / horizon
    const opacity = palette.hour === 'night' ? 0.22 : isHeavy ? 0.55 : 0.28 + 0.4 * nearness
    const length = (180 + 420 * nearness) * between(random, 0.7, 1.25)
    const x = ((at + random()) / count) * (width + 200) - 100
    return path(cloud(x, y, length, random), shade, opacity)
  })
}

/** Returns the outline of a cloud with a flat base. */
function cloud(x: number, foot: number, length: number, random: Random): string {
  const puffs = [0.1, 0.3, 0.5, 0.7, 0.9].map((share) => {
    const radius = length * (0.1 + 0.11 * Math.sin(share * Math.PI)) * between(random, 0.75, 1.2)
    const [left, rise] = [x + (share - 0.5) * length * 0.82 - radius, radius * between(random, 0.35, 0.9)]
    return svg`M${left} ${foot}v${-rise}a${radius} ${radius} 0 0 1 ${radius * 2} 0v${rise}Z`
  })
  return svg`M${x - length / 2} ${foot}v${-length * 0.06}h${length}v${length * 0.06}Z${puffs.join('')}`
}

/** Draws curtains of light: bright along the lower edge, fading upwards from green to violet. */
function aurora({ width, horizon }: Stage, random: Random): string {
  const [violet, green, bright] = ['#8a5bd6', '#35c9a5', '#7bffb8']
  const curtains = [0.45, 0.6, 0.76].map((share) => {
    const phase = random() * 6.28
    const hem = (x: number) => share + 0.09 * Math.sin((x / width) * 5.2 + phase)
    return many(36, (at) => {
      const [left, right] = [(width * at) / 36, (width * (at + 1)) / 36]
      const [foot, top] = [horizon * hem(left), horizon * between(random, 0.28, 0.5)]
      const data = svg`M${left} ${foot}L${right} ${horizon * hem(right)}v${-top}L${left} ${foot - top}Z`
      return path(data, 'url(#aurora)', between(random, 0.3, 0.8))
    })
  })
  const stops = [[0, violet, 0] as const, [0.5, green, 0.4] as const, [0.9, bright, 0.7] as const]
  return fade('aurora', 0, horizon * 0.8, ...stops, [1, bright, 0]) + curtains.join('')
}

function fireworks({ width, horizon, palette, light }: Stage, random: Random): string {
  const shades = [palette.accent, '#ffd166', '#ff6b8a', '#7ee7ff', palette.light]
  const bursts = shades.map((shade, burst) => {
    const x = width * ((light.side > 0 ? 0.08 : 0.3) + (burst + between(random, 0.1, 0.7)) * 0.13)
    const [y, reach] = [horizon * between(random, 0.2, 0.55), between(random, 80, 170)]
    const sparks = many(60, (at) => {
      const far = reach * (0.3 + 0.7 * ((at % 4) / 3))
      const [right, down] = [Math.cos(at * 2.4) * far, Math.sin(at * 2.4) * far + far * 0.14]
      return circle(x + right, y + down, between(random, 2, 5), shade)
    })
    return glow(`burst-${burst}`, x, y, reach * 1.3, shade, 0.45) + sparks
  })
  return bursts.join('')
}

/** Draws a rainbow opposite the sun. */
function rainbow({ width, horizon, light }: Stage): string {
  const [outer, x] = [Math.min(horizon * 0.88, width * 0.5), width * (light.side > 0 ? 0.3 : 0.7)]
  const bands = ['#e8505b', '#f59a3c', '#ffe066', '#5cc37a', '#4c9be8', '#7a63c9'].map(
    (shade, at) => svg`<circle cx="${x}" cy="${horizon}" r="${outer * (1 - at * 0.032)}" stroke="${shade}"/>`,
  )
  return svg`<g fill="none" stroke-opacity=".42" stroke-width="${outer * 0.032}">${bands.join('')}</g>`
}

/** Draws rain, snow, fog, falling leaves or petals in front of the figures. */
export function drawWeather(stage: Stage, random: Random): string {
  const { width, height, place, reading } = stage
  const { weather, season } = reading
  if (place === 'space') return ''
  if (weather === 'fog') return fog(stage)
  if (weather === 'rain' || weather === 'storm') return rain(stage, random, weather === 'storm')
  if (weather === 'snow' || season === 'winter')
    return many(((weather ? 240 : 90) * width * height) / 1_600_000, () => {
      const nearness = random() ** 2
      const [x, y] = [random() * width, random() * height]
      return circle(x, y, 1.8 + nearness * 6.5, '#ffffff', 0.9 - nearness * 0.4)
    })
  if (season !== 'autumn' && season !== 'spring') return ''
  const shades = season === 'autumn' ? ['#d9622b', '#e8a33d', '#b5402a'] : ['#f7c6d4', '#ffe3ea', '#f2a4bd']
  return many(46, (leaf) => {
    const turn = svg`translate(${random() * width} ${random() * height}) rotate(${random() * 360})
      scale(${between(random, 6, 20)})`
    return `<g transform="${turn}">${path('M0-1Q.8-.2 0 1Q-.8-.2 0-1Z', shades[leaf % 3] ?? '', 0.85)}</g>`
  })
}

function fog(stage: Stage): string {
  const shade = mix(stage.palette.sky[3], stage.palette.paper, 0.3)
  return many(3, (at) => {
    const [y, tall] = [below(stage, at * 0.25) - 140, stage.height * 0.34]
    const bank = fade(`fog-${at}`, y, y + tall, [0, shade, 0], [0.5, shade, 0.4 - at * 0.1], [1, shade, 0])
    return bank + box([-20, y, stage.width + 40, tall], `url(#fog-${at})`)
  })
}

function rain({ palette, width, height }: Stage, random: Random, isStorm: boolean): string {
  const lean = isStorm ? 0.34 : 0.16
  const drops = many(210, () => {
    const long = between(random, 26, 86)
    return svg`M${random() * width * 1.1} ${random() * height - long}l${-long * lean} ${long}l2.2 .4l${long * lean} ${-long}Z`
  })
  // A bolt of lightning, down its left side and up its right side.
  const [x, bends] = [width * between(random, 0.2, 0.8), Array.from({ length: 10 }, () => random() - 0.5)]
  const side = (half: number) =>
    bends.map((by, at) => svg`${x + by * 84 * Math.sqrt(at) + half * (5.5 - at * 0.5)} ${at * height * 0.05}`)
  const bolt = path(`M${[...side(-1), ...side(1).reverse()].join('L')}Z`, palette.paper, 0.92)
  return (isStorm ? bolt : '') + path(drops, mix(palette.sky[3], palette.paper, 0.5), 0.42)
}
