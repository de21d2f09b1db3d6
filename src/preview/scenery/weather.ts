// Rain, snow, mist, falling leaves and petals, in front of the scene.
import { hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { circle, path, short } from './drawing.js'
import { below, type Stage } from './stage.js'

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
    data += `M${short(x)} ${short(y)}l${short(-long * lean)} ${short(long)}l2.2 .4l${short(long * lean - 0.6)} ${short(-long)}Z`
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
    down += `${step === 0 ? 'M' : 'L'}${short(at - half)} ${short(y)}`
    up = `L${short(at + half)} ${short(y)}${up}`
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
        `<linearGradient id="fog-${index}" x1="0" x2="0" y1="0" y2="1"><stop offset="0" stop-color="${shade}" stop-opacity="0"/>` +
        `<stop offset=".5" stop-color="${shade}" stop-opacity="${0.5 - index * 0.08}"/><stop offset="1" stop-color="${shade}" stop-opacity="0"/></linearGradient>` +
        `<rect x="-20" y="${short(y)}" width="${short(width + 40)}" height="${short(height * 0.34)}" fill="url(#fog-${index})"/>`
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
    return `<path d="M0 -1Q.8 -.2 0 1Q-.8 -.2 0 -1Z" fill="${shade}" fill-opacity="${palette.hour === 'night' ? 0.4 : 0.85}" transform="translate(${short(x)} ${short(y)}) rotate(${Math.round(random() * 360)}) scale(${short(size * 0.8)} ${short(size)})"/>`
  }).join('')
}
