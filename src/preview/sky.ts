// Draws the sky behind the land (air, sun or moon, stars, clouds, northern lights), and the weather in front of the figures.
import { mix } from './palette.js'
import { between } from './random.js'
import { below, fade, floor, glow, many, type Stage, svg } from './stage.js'

export function drawSky(stage: Stage): string {
  const { palette, horizon, place, width, reading, random, light, scale } = stage
  const [zenith, high, low, edge] = palette.sky
  const isNight = palette.hour === 'night'
  const isSpace = place === 'space'
  const stars = many(isNight || isSpace ? 330 : 0, () => {
    const [x, y, radius] = [random() * width, random() ** 1.25 * horizon, 0.9 + random() ** 5 * 2.6]
    return svg`<circle cx="${x}" cy="${y}" r="${radius}" fill="#f4f6ff" fill-opacity="${0.25 + random() * 0.7}"/>`
  })
  const radius = /dusk|dawn/.test(palette.hour) ? 85 : 60
  const disc = svg`<g transform="translate(${light.x} ${light.y}) scale(${radius * (0.75 + 0.25 * scale)})">
    <circle r="1" fill="${palette.light}"/><path fill="${isNight ? mix(palette.light, high, 0.22) : 'none'}" d="M-.5-.25a.2.2 0 0 1
    .42 0 .2.2 0 0 1-.42 0M.12.12a.15.15 0 0 1 .32 0 .15.15 0 0 1-.32 0M-.22.4a.12.12 0 0 1 .26 0 .12.12 0 0 1-.26 0"/></g>`
  const air = floor(stage, 'air', -20, `0 ${zenith}, .24 ${high}, .44 ${low}, .58 ${edge}`) + stars
  if (isSpace) return air
  const sun = glow('glow', light.x, light.y, radius * 7, palette.light, palette.hour === 'grey' ? 0.35 : 0.7)
  return (
    air +
    sun +
    (reading.weather === undefined ? disc : '') +
    (reading.sky ? aurora(stage) : '') +
    clouds(stage)
  )
}

/** Draws round clouds. Lower clouds are smaller and paler, because they are further away. */
function clouds({ width, horizon, palette, reading, random }: Stage): string {
  const isHeavy = /storm|rain/.test(reading.weather ?? '') || palette.hour === 'grey'
  const [dark, pale] = [mix(palette.sky[0], palette.ink, 0.3), mix(palette.sky[3], palette.light, 0.6)]
  const count = isHeavy ? 11 : 6
  return many(count, (at) => {
    const length = between(random, 150, 560)
    const [x, y] = [
      ((at + random()) / count) * width,
      between(random, length * 0.3, horizon * (0.8 - length / 1400)),
    ]
    const base = length * 0.1
    const puffs = many(5, (puff) => {
      const radius = length * (0.08 + 0.1 * Math.sin((puff + 0.6) * 0.75)) * between(random, 0.8, 1.15)
      return svg`M${x + (puff - 2) * length * 0.19 - radius} ${y - base}a${radius} ${radius} 0 0 1 ${radius * 2} 0a${radius} ${base} 0 0 1 ${-radius * 2} 0`
    })
    return svg`<path d="${puffs}M${x - length / 2} ${y - base / 2}a${base / 2} ${base / 2} 0 0 1 0 ${-base}h${length}a${base / 2} ${base / 2} 0 0 1 0 ${base}Z"
      fill="${isHeavy ? dark : pale}" fill-opacity="${palette.hour === 'night' ? 0.12 : 0.25 + length / 1400}"/>`
  })
}

/** Draws curtains of light: bright along the lower edge, fading upwards from green to violet. */
function aurora({ width, horizon, random }: Stage): string {
  const curtain = (share: number) => {
    const phase = random() * 6.28
    const hem = (at: number) => horizon * (share + 0.09 * Math.sin(at * 0.14 + phase))
    return many(36, (at) => {
      const tall = horizon * between(random, 0.28, 0.5)
      return svg`<path d="M${(width * at) / 36} ${hem(at)}L${(width * (at + 1)) / 36} ${hem(at + 1)}v${-tall}L${(width * at) / 36} ${hem(at) - tall}Z"
        fill="url(#aurora)" fill-opacity="${between(random, 0.3, 0.8)}"/>`
    })
  }
  return (
    fade('aurora', '0 #8a5bd6 0, .6 #35c9a5 .4, .95 #7bffb8 .7, 1 #7bffb8 0') +
    [0.45, 0.6, 0.76].map(curtain).join('')
  )
}

/** Draws rain, snow, fog, falling leaves or petals in front of the figures. */
export function drawWeather(stage: Stage): string {
  const { width, height, reading, random, palette } = stage
  const { weather, season } = reading
  const pale = mix(palette.sky[3], palette.paper, 0.4)
  if (weather === 'fog')
    return many(
      3,
      (at) => svg`${fade(`fog-${at}`, `0 ${pale} 0, .5 ${pale} ${0.4 - at * 0.1}, 1 ${pale} 0`)}
        <rect x="-20" y="${below(stage, at * 0.25) - 140}" width="${width + 40}" height="${height * 0.34}" fill="url(#fog-${at})"/>`,
    )
  if (weather === 'rain' || weather === 'storm') {
    const lean = weather === 'storm' ? 0.34 : 0.16
    const drops = many(210, () => {
      const long = between(random, 26, 86)
      return svg`M${random() * width * 1.1} ${random() * height - long}l${-long * lean} ${long}`
    })
    const x = width * between(random, 0.2, 0.8)
    const bolt = many(
      10,
      (at) => svg`${at ? 'L' : 'M'}${x + (random() - 0.5) * 84 * Math.sqrt(at)} ${at * height * 0.05 - 9}`,
    )
    return svg`<path d="${weather === 'storm' ? bolt : ''}" fill="none" stroke="${palette.paper}" stroke-width="7"/>
      <path d="${drops}" stroke="${pale}" stroke-width="2" stroke-opacity=".42"/>`
  }
  if (weather === 'snow' || season === 'winter')
    return many(weather ? 250 : 100, () => {
      const near = random() ** 2
      return svg`<circle cx="${random() * width}" cy="${random() * height}" r="${1.8 + near * 6.5}" fill="#fff" fill-opacity="${0.9 - near * 0.4}"/>`
    })
  const shades = { autumn: '#d9622b #e8a33d #b5402a', spring: '#f7c6d4 #ffe3ea #f2a4bd', summer: undefined }[
    season ?? 'summer'
  ]
  return many(
    shades ? 46 : 0,
    (
      at,
    ) => svg`<path d="M0-1Q.8-.2 0 1Q-.8-.2 0-1Z" fill="${shades?.split(' ')[at % 3] ?? ''}" fill-opacity=".85"
      transform="translate(${random() * width} ${random() * height}) rotate(${random() * 360}) scale(${between(random, 6, 20)})"/>`,
  )
}
