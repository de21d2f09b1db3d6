// Draws the first ground: hills, mountains, a forest, a desert or a planet.
import { EMOJI } from './emoji.mjs'
import { repaint } from './figure.js'
import { mix } from './palette.js'
import { between } from './random.js'
import {
  below,
  fillBelow,
  glow,
  type Layers,
  type Line,
  many,
  ridge,
  type Stage,
  slope,
  svg,
} from './stage.js'

/** The heights of three lines of land, the furthest first, and the sizes and the density of the trees on them. */
const RELIEFS: Readonly<
  Record<string, readonly [heights: readonly number[], trees: readonly number[], density: number]>
> = {
  hills: [[130, 110, 60], [46, 92, 0], 0.3],
  mountains: [[440, 230, 60], [0, 0, 74], 0.5],
  forest: [[50, 50, 50], [230, 330, 0], 1.2],
  desert: [[90, 130, 90], [0, 0, 0], 0],
}

export function drawLand(stage: Stage): Layers {
  const { palette, place, scale, reading, random } = stage
  const [heights, sizes, density] = RELIEFS[place] ?? [[60, 150, 50], [0, 0, 0], 0]
  const isWhite = reading.season === 'winter' && density > 0
  const isRound = !isWhite && (place === 'hills' || reading.season !== undefined)
  const isRocky = /mountains|space/.test(place)
  const dyed =
    { spring: '#f7b9cc', autumn: '#d8602a', winter: '', summer: '' }[reading.season ?? 'summer'] ||
    palette.middle
  const leaves = isWhite
    ? mix('#2f6f6f', palette.ink, 0.5)
    : mix(mix(palette.middle, dyed, 0.5), palette.front, 0.2)
  const hills = [palette.far, palette.middle, palette.near].map((shade, at) => {
    const line = ridge(random, below(stage, 0.04 + at * 0.19), (heights[at] ?? 0) * scale, isRocky && at < 2)
    const cap =
      place === 'mountains' && at === 0 && reading.season !== 'summer'
        ? mix(shade, palette.paper, 0.8)
        : shade
    const end = at < 2 ? mix(shade, palette.sky[3], 0.42) : mix(shade, palette.front, isWhite ? 0.3 : 0.5)
    const growth = trees(
      stage,
      line,
      (sizes[at] ?? 0) * scale,
      density,
      isRound,
      at === 0 ? mix(palette.far, leaves, 0.4) : leaves,
    )
    return growth + slope(stage, `slope-${at}`, line, shade, end, cap)
  })
  const [far, middle, near = ''] = hills
  return [
    `${symbols(stage, isWhite)}${place === 'space' ? planet(stage) : ''}${far}${middle}`,
    near,
    density > 0 ? edge(stage, isWhite) : '',
  ]
}

/** Defines a conifer and a round tree, one unit high with the foot at 0, 0. In winter the conifer has snow behind it. */
function symbols({ palette, light }: Stage, isWhite: boolean): string {
  const conifer =
    'M-.24-.1q.168-.12.24-.32q.072.2.24.32zM-.19-.3q.133-.12.19-.32q.057.2.19.32zM-.14-.5q.098-.12.14-.32q.042.2.14.32z' +
    'M-.09-.7q.063-.12.09-.32q.027.2.09.32zM-.03 0v-.2h.06v.2z'
  return `<defs><g id="conifer"><path d="${isWhite ? conifer : ''}" fill="${palette.paper}" transform="translate(${light.side * 0.03} -.03)"/>
    <path d="${conifer}"/></g><g id="round">
    <path d="M-.03 0v-.66h.06v.66z" fill="${mix(palette.front, palette.ink, 0.5)}"/><circle cy="-.66" r=".32"/>
    <circle cx="-.2" cy="-.54" r=".2"/><circle cx=".2" cy="-.56" r=".21"/>
    <circle cx="${light.side * 0.06}" cy="-.71" r=".25" fill="${palette.light}" fill-opacity=".1"/>
    <circle cx="${light.side * 0.13}" cy="-.76" r=".14" fill="${palette.light}" fill-opacity=".14"/></g></defs>`
}

/** Draws trees along a line, in groups with gaps. */
function trees(
  { palette, width, random }: Stage,
  line: Line,
  size: number,
  density: number,
  isRound: boolean,
  shade: string,
): string {
  return many(size > 0 ? width / size / (0.36 - density * 0.14) : 0, () => {
    const x = random() * width
    if (Math.sin(x / (size * 3.1) + size) + random() * 1.4 - 0.7 < 1 - density * 2) return ''
    return svg`<use href="#${isRound ? 'round' : 'conifer'}" fill="${mix(shade, palette.ink, random() * 0.15)}"
      transform="translate(${x} ${line(x) + 10}) scale(${size * between(random, 0.65, 1.25)})"/>`
  })
}

/** Draws the strip of land in front of the figures, with grass where no snow is. */
function edge(stage: Stage, isWhite: boolean): string {
  const { palette, width, height, random } = stage
  const line = ridge(random, height * 0.985, 40)
  const shade = isWhite ? mix(palette.near, palette.front, 0.25) : palette.front
  const blades = many(isWhite ? 0 : width / 12, (at) => {
    const tall = between(random, 25, 75)
    return svg`M${at * 12} ${line(at * 12) + 6}q5 ${-tall / 2} ${tall * between(random, -0.28, 0.34)} ${-tall}q5 ${tall / 2} 6 ${tall}Z`
  })
  return `${fillBelow(stage, line, shade)}<path d="${blades}" fill="${shade}"/>`
}

/** Draws a planet with a ring, and nebulas. */
function planet({ width, palette, horizon, light, scale, reading, random }: Stage): string {
  const mist = [palette.accent, palette.second, palette.sky[3]].map((shade, at) =>
    glow(`nebula-${at}`, random() * width, random() * horizon, between(random, 260, 460), shade, 0.36),
  )
  return svg`${mist.join('')}<g transform="translate(${light.x} ${light.y + 80}) scale(${13 * Math.sqrt(scale)}) translate(-16 -16)">
    ${repaint(EMOJI.figures['ringed-planet']?.body ?? '', reading.tints[0])}</g>`
}
