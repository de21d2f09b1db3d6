// Draws the first ground: hills, mountains, a forest, a desert, a planet, or the tops of clouds.
import { iconBody, repaint } from '../cast/figure.js'
import { type Colour, colour, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { below, box, circle, fade, glow, many, path, type Shade, type Stage, svg } from './stage.js'

/** Drawings behind the figures, under them, and in front of them. */
export interface Layers {
  readonly back: string
  readonly ground: string
  readonly front?: string
}

/** Returns y at x. */
export type Line = (x: number) => number

const WAVES = {
  smooth: Math.sin,
  rocky: (turn: number) => Math.asin(Math.sin(turn)) / 1.57,
  cloudy: (turn: number) => 2 * Math.abs(Math.sin(turn * 1.5)) - 1,
}

/** Returns the outline of land: the sum of waves with incommensurable lengths, so that none repeats. */
export function ridge(
  random: Random,
  base: number,
  tall: number,
  shape: keyof typeof WAVES = 'smooth',
): Line {
  const [start, length] = [between(random, 0, 7), between(random, 700, 1300)]
  const shares = shape === 'rocky' ? [0.48, 0.26, 0.14, 0.08, 0.04] : [0.61, 0.28, 0.11]
  const turn = (x: number, at: number) => (x * Math.PI * 2 * 1.73 ** at) / length + start * (at + 1.3)
  return (x) =>
    base - (shares.reduce((sum, share, at) => sum + share * WAVES[shape](turn(x, at)), 1) / 2) * tall
}

/** Fills the stage below a line. */
export function fillBelow({ width, height }: Stage, line: Line, shade: Shade, opacity = 1): string {
  const points = Array.from({ length: 161 }, (_, at) => (at / 160) * (width + 40) - 20)
  return path(svg`M${points.map((x) => svg`${x} ${line(x)}`).join('L')}V${height + 40}H-20Z`, shade, opacity)
}

/** Draws land below a line: lit at its edge, and turning into `end` at the bottom. `cap` is snow on peaks. */
export function slope(stage: Stage, name: string, line: Line, shade: Colour, end: Colour, cap = shade) {
  const top = Math.min(...Array.from({ length: 40 }, (_, at) => line((at / 39) * stage.width)))
  const bottom = top + Math.max(160, (stage.height - stage.horizon) * 0.75)
  return (
    fade(name, top, bottom, [0, cap], [0.22, cap], [0.34, shade], [1, end]) +
    fillBelow(stage, line, mix(cap, stage.palette.light, 0.35)) +
    fillBelow(stage, (x) => line(x) + 2.5 * stage.scale, `url(#${name})`)
  )
}

/** Draws trees along a line, in groups with gaps. */
function trees(stage: Stage, random: Random, line: Line, isRound: boolean, size: number, shade: Colour) {
  const { palette, light, width, reading } = stage
  const { density } = reliefOf(stage)
  const leaves = reading.season === 'spring' ? mix(shade, parseHex('#f7b9cc'), 0.75) : shade
  const snow = mix(palette.near, palette.paper, 0.5)
  let drawing = ''
  for (let x = -20; x < width + 20; x += size * between(random, 0.13, 0.6 - density * 0.28)) {
    if (Math.sin(x / (size * 3.1) + size) + random() * 1.4 - 0.7 < 1 - density * 2) continue
    const [foot, tall] = [line(x) + 10, size * between(random, 0.65, 1.25)]
    const leaf = mix(leaves, palette.ink, random() * 0.15)
    if (isRound) drawing += roundTree(stage, x, foot, tall, leaf)
    else {
      // The snow is a white tree behind the tree, on the side of the light.
      if (reading.season === 'winter')
        drawing += conifer(x + light.side * tall * 0.035, foot - tall * 0.03, tall, snow)
      drawing += conifer(x, foot, tall, leaf)
    }
  }
  return drawing
}

function conifer(x: number, foot: number, size: number, shade: Shade): string {
  const tiers = [0, 1, 2, 3].map((tier) => {
    const [half, y] = [size * (0.24 - tier * 0.05), foot - size * (0.1 + tier * 0.2)]
    return svg`M${x - half} ${y}q${half * 0.7} ${-size * 0.12} ${half} ${-size * 0.32}
      q${half * 0.3} ${size * 0.2} ${half} ${size * 0.32}Z`
  })
  const trunk = svg`M${x - size * 0.03} ${foot}v${-size * 0.2}h${size * 0.06}v${size * 0.2}Z`
  return path(tiers.join('') + trunk, shade)
}

function roundTree({ palette, light }: Stage, x: number, foot: number, size: number, leaves: Colour): string {
  const ball = (right: number, down: number, radius: number, shade: Colour) =>
    circle(x + size * right, foot + size * (down - 0.66), size * radius, shade)
  const [trunk, dark] = [mix(palette.front, palette.ink, 0.5), mix(leaves, palette.front, 0.25)]
  return (
    box([x - size * 0.03, foot - size * 0.66, size * 0.06, size * 0.66], trunk) +
    (ball(0, 0, 0.32, dark) + ball(-0.2, 0.12, 0.2, dark) + ball(0.2, 0.1, 0.21, dark)) +
    ball(light.side * 0.06, -0.05, 0.25, leaves) +
    ball(light.side * 0.13, -0.1, 0.14, mix(leaves, palette.light, 0.2))
  )
}

/** Three lines of land, the furthest first: their shape, heights, and the sizes and density of the trees on them. */
const RELIEFS = {
  hills: { shape: 'smooth', heights: [130, 110, 60], trees: [46, 92, 0], density: 0.3 },
  mountains: { shape: 'rocky', heights: [440, 230, 60], trees: [0, 0, 74], density: 0.5 },
  forest: { shape: 'smooth', heights: [50, 50, 50], trees: [230, 330, 0], density: 1.2 },
  desert: { shape: 'smooth', heights: [90, 130, 90], trees: [0, 0, 0], density: 0 },
  space: { shape: 'rocky', heights: [60, 150, 50], trees: [0, 0, 0], density: 0 },
  sky: { shape: 'cloudy', heights: [130, 160, 190], trees: [0, 0, 0], density: 0 },
} as const

const reliefOf = ({ place }: Stage) => RELIEFS[place as keyof typeof RELIEFS]

export function drawLand(stage: Stage, random: Random): Layers {
  const { palette, place, scale, reading } = stage
  const relief = reliefOf(stage)
  const isBare = relief.density === 0
  const isWhite = reading.season === 'winter' && !isBare
  const isLeafy = reading.season === undefined ? random() < 0.3 : !isWhite
  const isRound = !isWhite && (place === 'hills' || (place === 'forest' && isLeafy))
  const leaves = isWhite
    ? mix(palette.ink, colour(0.5, 0.05, 190), 0.6)
    : mix(palette.middle, palette.front, 0.2)
  const hills = relief.heights.map((tall, at) => {
    const shape = at === 2 && relief.shape === 'rocky' ? 'smooth' : relief.shape
    const line = ridge(random, below(stage, 0.04 + at * 0.19), tall * scale, shape)
    const shade = [palette.far, palette.middle, palette.near][at] ?? palette.near
    const size = (relief.trees[at] ?? 0) * scale
    const leaf = at === 0 ? mix(palette.far, leaves, isWhite ? 0.5 : 0.3) : leaves
    const hasSnow = place === 'mountains' && at === 0 && reading.season !== 'summer'
    const cap = hasSnow ? mix(shade, palette.paper, 0.8) : shade
    const end = at < 2 ? mix(shade, palette.sky[3], 0.42) : mix(shade, palette.front, isWhite ? 0.3 : 0.5)
    const growth = size > 0 ? trees(stage, random, line, isRound, size, leaf) : ''
    return growth + slope(stage, `slope-${at}`, line, shade, end, cap)
  })
  return {
    back: (place === 'space' ? planet(stage, random) : '') + hills[0] + hills[1],
    ground: hills[2] ?? '',
    front: isBare ? '' : edge(stage, random, isWhite),
  }
}

/** Draws the strip of land in front of the figures, with grass where no snow is. */
function edge(stage: Stage, random: Random, isWhite: boolean): string {
  const { palette, width, height, scale } = stage
  const line = ridge(random, height * 0.985, 40)
  const shade = isWhite ? mix(palette.near, palette.front, 0.25) : palette.front
  const blades = many(isWhite ? 0 : width / 12, (at) => {
    const [x, tall] = [at * 12 + random() * 8, 70 * Math.sqrt(scale) * between(random, 0.35, 1)]
    return svg`M${x - 5} ${line(x) + 6}q5 ${-tall / 2} ${tall * between(random, -0.28, 0.34)} ${-tall}
      q5 ${tall / 2} 6 ${tall}Z`
  })
  return fillBelow(stage, line, shade) + path(blades, shade)
}

/** Draws a planet with a ring, and nebulas. */
function planet({ width, palette, horizon, light, scale, reading }: Stage, random: Random): string {
  const mist = [palette.accent, palette.second, palette.sky[3], palette.accent].map((shade, at) =>
    glow(`nebula-${at}`, random() * width, random() * horizon, between(random, 260, 460), shade, 0.36),
  )
  const tint = reading.tints[0] && { lightness: 0.62, ...reading.tints[0] }
  const size = between(random, 11, 15) * Math.sqrt(scale)
  return svg`${mist.join('')}<g transform="translate(${light.x} ${light.y + 80}) scale(${size}) translate(-16 -16)">
    ${repaint(iconBody('ringed-planet') ?? '', tint)}</g>`
}
