// Draws the sky behind the land (air, sun or moon, stars, clouds, northern lights), and the weather in front of the figures.
import { below, between, fade, floor, glow, many, mix, type Stage, strew, svg } from './stage.js'

export function drawSky(stage: Stage): string {
  const { palette, place, reading, light, scale } = stage
  const { zenith, high, low, haze } = palette
  const [isNight, isSpace] = [palette.hour === 'night', place === 'space']
  const radius = /dusk|dawn/.test(palette.hour) ? 85 : 60
  const star = '<circle r="1" fill="#f4f6ff" fill-opacity=".7"/>'
  // The lower half is behind the land.
  const air = svg`${floor(stage, 'air', -20, zenith, high, low, haze, haze, haze)}
    ${strew(stage, isNight || isSpace ? 330 : 0, [0.7, 2.7], star)}`
  if (isSpace) return air
  const disc = svg`<g transform="translate(${light.x} ${light.y}) scale(${radius * (0.75 + 0.25 * scale)})">
    <circle r="1" fill="${palette.light}"/><path fill="${isNight ? mix(palette.light, high, 0.22) : 'none'}" d="M-.5-.25a.2.2 0 0 1
    .42 0 .2.2 0 0 1-.42 0M.12.12a.15.15 0 0 1 .32 0 .15.15 0 0 1-.32 0M-.22.4a.12.12 0 0 1 .26 0 .12.12 0 0 1-.26 0"/></g>`
  return svg`${air}${glow('glow', light.x, light.y, radius * 7, palette.light)}${reading.weather === undefined ? disc : ''}
    ${reading.sky ? aurora(stage) : ''}${clouds(stage)}`
}

/** Five ellipses, one unit wide. */
const CLOUD = `M-.4-.06a.12.12 0 1 0 .24 0a.12.12 0 1 0-.24 0M-.26-.12a.18.18 0 1 0 .36 0a.18.18 0 1 0-.36 0
  M.01-.09a.15.15 0 1 0 .3 0a.15.15 0 1 0-.3 0M.25-.03a.09.09 0 1 0 .18 0a.09.09 0 1 0-.18 0M-.5 0a.5.06 0 1 0 1 0a.5.06 0 1 0-1 0`

/** Draws clouds. Lower clouds are smaller and paler, because they are further away. */
function clouds({ width, horizon, palette, reading, random }: Stage) {
  const isHeavy = /storm|rain/.test(reading.weather ?? '') || palette.hour === 'grey'
  const fill = isHeavy ? mix(palette.zenith, palette.ink, 0.3) : mix(palette.haze, palette.light, 0.6)
  const count = isHeavy ? 11 : 6
  return many(count, (at) => {
    const length = between(random, 150, 560)
    return svg`<path d="${CLOUD}" fill="${fill}" fill-opacity="${palette.hour === 'night' ? 0.12 : 0.25 + length / 1400}"
      transform="translate(${((at + random()) / count) * width} ${between(random, length * 0.3, horizon * (0.8 - length / 1400))})
      scale(${random() < 0.5 ? length : -length} ${length * between(random, 0.55, 0.95)})"/>`
  })
}

/** Draws curtains of light: bright along the lower edge, fading upwards from green to violet. */
function aurora({ width, horizon, random }: Stage) {
  const phase = random() * 6.28
  const strips = many(
    108,
    (at) => svg`<path d="M0 0h1v-1h-1Z" fill="url(#aurora)" fill-opacity="${between(random, 0.3, 0.8)}"
      transform="translate(${(width * (at % 36)) / 36} ${horizon * (0.45 + Math.floor(at / 36) * 0.15 + 0.09 * Math.sin(at * 0.14 + phase))})
      scale(${width / 36 + 1} ${horizon * between(random, 0.28, 0.5)})"/>`,
  )
  return fade('aurora', '#8a5bd600', '#35c9a555', '#7bffb8b0', '#7bffb800') + strips
}

/** Draws rain, snow, fog, falling leaves or petals in front of the figures. */
export function drawWeather(stage: Stage): string {
  const { width, height, reading, random, palette } = stage
  const { weather, season } = reading
  const pale = mix(palette.haze, palette.paper, 0.4)
  const drop = `<path d="M0-1l-.24 1h.04l.24-1Z" fill="${pale}" fill-opacity=".42"/>`
  const flake = '<circle r="1" fill="#fff" fill-opacity=".75"/>'
  const leaf = `<path d="M0-1Q.8-.2 0 1Q-.8-.2 0-1Z" fill="${season === 'autumn' ? '#d9622b' : '#f7c6d4'}" transform="rotate(50)"/>`
  const mist = svg`${fade('fog', `${pale}00`, `${pale}70`, `${pale}00`)}
    <g fill="url(#fog)" transform="translate(-20 ${below(stage, -0.4)}) scale(${width + 40} ${height * 0.34})">
    <path d="M0 0h1v1h-1z"/><path d="M0 .3h1v1h-1z"/><path d="M0 .6h1v1h-1z"/></g>`
  const bolt = svg`<path d="M0-9l40 130-70 90 90 60-30 70" transform="translate(${width * between(random, 0.2, 0.8)})"
    fill="none" stroke="${palette.paper}" stroke-width="7"/>`
  if (weather === 'fog') return mist
  if (weather === 'snow' || season === 'winter')
    return strew(stage, weather === 'snow' ? 250 : 100, [1.8, 8], flake)
  const rain = strew(stage, weather === undefined ? 0 : 210, [30, 100], drop)
  const falling = strew(stage, /autumn|spring/.test(season ?? '') ? 46 : 0, [7, 22], leaf)
  return (weather === 'storm' ? bolt : '') + rain + falling
}
