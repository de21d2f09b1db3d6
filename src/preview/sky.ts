// Draws the sky behind the land (air, sun or moon, stars, clouds, northern lights), and the weather in front of the figures.
import { mix } from './palette.js'
import { between } from './random.js'
import { below, fade, floor, glow, many, type Stage, strew, svg } from './stage.js'

export function drawSky(stage: Stage): string {
  const { palette, horizon, place, reading, light, scale } = stage
  const [zenith, high, low, edge] = palette.sky
  const [isNight, isSpace] = [palette.hour === 'night', place === 'space']
  const radius = /dusk|dawn/.test(palette.hour) ? 85 : 60
  const star = '<circle r="1" fill="#f4f6ff" fill-opacity=".7"/>'
  const air = floor(stage, 'air', -20, `0 ${zenith}, .24 ${high}, .44 ${low}, .58 ${edge}`)
  const stars = strew(stage, isNight || isSpace ? 330 : 0, horizon, [0.7, 2.7], star)
  if (isSpace) return air + stars
  const disc = svg`<g transform="translate(${light.x} ${light.y}) scale(${radius * (0.75 + 0.25 * scale)})">
    <circle r="1" fill="${palette.light}"/><path fill="${isNight ? mix(palette.light, high, 0.22) : 'none'}" d="M-.5-.25a.2.2 0 0 1
    .42 0 .2.2 0 0 1-.42 0M.12.12a.15.15 0 0 1 .32 0 .15.15 0 0 1-.32 0M-.22.4a.12.12 0 0 1 .26 0 .12.12 0 0 1-.26 0"/></g>`
  return (
    air +
    stars +
    glow('glow', light.x, light.y, radius * 7, palette.light, palette.hour === 'grey' ? 0.35 : 0.7) +
    (reading.weather === undefined ? disc : '') +
    (reading.sky ? aurora(stage) : '') +
    clouds(stage)
  )
}

/** Draws round clouds. Lower clouds are smaller and paler, because they are further away. */
function clouds({ width, horizon, palette, reading, random }: Stage): string {
  const isHeavy = /storm|rain/.test(reading.weather ?? '') || palette.hour === 'grey'
  const fill = isHeavy ? mix(palette.sky[0], palette.ink, 0.3) : mix(palette.sky[3], palette.light, 0.6)
  const count = isHeavy ? 11 : 6
  return many(count, (at) => {
    const length = between(random, 150, 560)
    const x = ((at + random()) / count) * width
    const y = between(random, length * 0.3, horizon * (0.8 - length / 1400))
    const puffs = many(5, (puff) => {
      const radius = length * (0.08 + 0.1 * Math.sin((puff + 0.6) * 0.75)) * between(random, 0.8, 1.15)
      return svg`M${x + (puff - 2) * length * 0.19 - radius} ${y}a${radius} ${radius} 0 0 1 ${radius * 2} 0a${radius} ${length * 0.1} 0 0 1 ${-radius * 2} 0`
    })
    return svg`<path d="${puffs}M${x - length / 2} ${y}a${length / 2} ${length * 0.05} 0 0 1 ${length} 0a${length / 2} ${length * 0.05} 0 0 1 ${-length} 0"
      fill="${fill}" fill-opacity="${palette.hour === 'night' ? 0.12 : 0.25 + length / 1400}"/>`
  })
}

/** Draws curtains of light: bright along the lower edge, fading upwards from green to violet. */
function aurora({ width, horizon, random }: Stage): string {
  const phase = random() * 6.28
  const strips = many(108, (at) => {
    const [column, tall] = [at % 36, horizon * between(random, 0.28, 0.5)]
    const foot = horizon * (0.45 + Math.floor(at / 36) * 0.15 + 0.09 * Math.sin(at * 0.14 + phase))
    return svg`<rect x="${(width * column) / 36}" y="${foot - tall}" width="${width / 36 + 1}" height="${tall}"
      fill="url(#aurora)" fill-opacity="${between(random, 0.3, 0.8)}"/>`
  })
  return fade('aurora', '0 #8a5bd6 0, .6 #35c9a5 .4, .95 #7bffb8 .7, 1 #7bffb8 0') + strips
}

/** Draws rain, snow, fog, falling leaves or petals in front of the figures. */
export function drawWeather(stage: Stage): string {
  const { width, height, reading, random, palette } = stage
  const { weather, season = 'summer' } = reading
  const pale = mix(palette.sky[3], palette.paper, 0.4)
  if (weather === 'fog')
    return many(
      3,
      (at) => svg`${fade(`fog-${at}`, `0 ${pale} 0, .5 ${pale} ${0.4 - at * 0.1}, 1 ${pale} 0`)}
        <rect x="-20" y="${below(stage, at * 0.25) - 140}" width="${width + 40}" height="${height * 0.34}" fill="url(#fog-${at})"/>`,
    )
  if (weather === 'rain' || weather === 'storm') {
    const drop = `<path d="M0-1l-.24 1h.04l.24-1Z" fill="${pale}" fill-opacity=".42"/>`
    const bolt = svg`<path d="M0-9l40 130-70 90 90 60-30 70" transform="translate(${width * between(random, 0.2, 0.8)})"
      fill="none" stroke="${palette.paper}" stroke-width="7"/>`
    return (weather === 'storm' ? bolt : '') + strew(stage, 210, height, [30, 100], drop)
  }
  if (weather === 'snow' || season === 'winter')
    return strew(
      stage,
      weather ? 250 : 100,
      height,
      [1.8, 8],
      '<circle r="1" fill="#fff" fill-opacity=".75"/>',
    )
  const shades = { autumn: ['#d9622b', '#e8a33d'], spring: ['#f7c6d4', '#f2a4bd'], summer: [] }[season]
  const leaf = (shade: string, at: number) =>
    svg`<path d="M0-1Q.8-.2 0 1Q-.8-.2 0-1Z" fill="${shade}" fill-opacity=".85" transform="rotate(${at * 70 + 30})"/>`
  return shades.map((shade, at) => strew(stage, 23, height, [7, 22], leaf(shade, at))).join('')
}
