// Draws the first ground: hills, mountains, a forest, a desert, a planet, or the tops of clouds.
import { type Colour, colour, hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { below, box, circle, fade, glow, path, type Stage, svg } from './stage.js'

/** Drawings behind the figures, under them, and in front of them. */
export interface Ground {
  readonly back: string
  readonly ground: string
  readonly front: string
}

/** Returns y at x. */
export type Line = (x: number) => number

/** Returns the outline of hills, or of rocks: the sum of waves with incommensurable lengths, so that none repeats. */
export function ridge(random: Random, base: number, tall: number, isRocky = false): Line {
  const [start, length] = [between(random, 0, 7), between(random, 700, 1300)]
  const wave = (turn: number) => (isRocky ? Math.asin(Math.sin(turn)) / 1.57 : Math.sin(turn))
  const shares = isRocky ? [0.48, 0.26, 0.14, 0.08, 0.04] : [0.61, 0.28, 0.11]
  const turn = (x: number, at: number) => (x * Math.PI * 2 * 1.73 ** at) / length + start * (at + 1.3)
  return (x) => base - (shares.reduce((sum, share, at) => sum + share * wave(turn(x, at)), 1) / 2) * tall
}

/** Fills the stage below a line. */
export function fillBelow({ width, height }: Stage, line: Line, shade: string, opacity = 1): string {
  const points = Array.from({ length: 131 }, (_, at) => (at / 130) * (width + 40) - 20)
  return path(svg`M${points.map((x) => svg`${x} ${line(x)}`).join('L')}V${height + 40}H-20Z`, shade, opacity)
}

/** Draws land below a line: lit at its edge, and mixed with `base` towards the bottom. `cap` is snow on peaks. */
export function slope(
  stage: Stage,
  name: string,
  line: Line,
  shade: Colour,
  base: Colour,
  amount: number,
  cap = shade,
): string {
  const top = Math.min(...Array.from({ length: 40 }, (_, at) => line((at / 39) * stage.width)))
  const end = hex(mix(shade, base, amount))
  const bottom = top + Math.max(160, (stage.height - stage.horizon) * 0.75)
  return (
    fade(name, top, bottom, [0, hex(cap)], [0.22, hex(cap)], [0.34, hex(shade)], [1, end]) +
    fillBelow(stage, line, hex(mix(cap, stage.palette.light, 0.35))) +
    fillBelow(stage, (x) => line(x) + 2.5 * stage.scale, `url(#${name})`)
  )
}

/** Draws trees along a line, in groups with gaps. */
function trees(
  stage: Stage,
  random: Random,
  line: Line,
  isRound: boolean,
  size: number,
  density: number,
  shade: Colour,
) {
  const { palette, light, width, reading } = stage
  const snow = hex(mix(palette.near, palette.paper, 0.5))
  let drawing = ''
  for (let x = -20; x < width + 20; x += size * between(random, 0.13, 0.6 - density * 0.28)) {
    if (Math.sin(x / (size * 3.1) + size) + random() * 1.4 - 0.7 < 1 - density * 2) continue
    const [foot, tall, leaf] = [
      line(x) + 10,
      size * between(random, 0.65, 1.25),
      mix(shade, palette.ink, random() * 0.15),
    ]
    drawing += isRound ? roundTree(stage, x, foot, tall, leaf) : conifer(x, foot, tall, hex(leaf))
    if (!isRound && reading.season === 'winter') drawing += conifer(x, foot, tall, snow, light.side)
  }
  return drawing
}

/** Draws a conifer, or only the snow on its side that faces the light. */
function conifer(x: number, foot: number, size: number, shade: string, side = 0): string {
  const tiers = [0, 1, 2, 3].map((tier) => {
    const [half, y] = [size * (0.24 - tier * 0.05), foot - size * (0.1 + tier * 0.2)]
    const [left, right] = side === 0 ? [-half, half] : [side * half, side * half * 0.25]
    return svg`M${x + left} ${y}q${-left * 0.7} ${-size * 0.12} ${-left} ${-size * 0.32}
      q${right * 0.3} ${size * 0.2} ${right} ${size * 0.32}Z`
  })
  return path(
    tiers.join('') +
      (side === 0 ? svg`M${x - size * 0.03} ${foot}v${-size * 0.2}h${size * 0.06}v${size * 0.2}Z` : ''),
    shade,
  )
}

function roundTree(
  { palette, light, reading }: Stage,
  x: number,
  foot: number,
  size: number,
  leaves: Colour,
): string {
  const pink = palette.isMonochrome ? palette.paper : parseHex('#f7b9cc')
  const shade = reading.isInBlossom ? mix(leaves, pink, 0.8) : leaves
  const dark = mix(shade, palette.front, 0.25)
  const ball = (right: number, down: number, radius: number, each: Colour) =>
    circle(x + size * right, foot + size * (down - 0.66), size * radius, hex(each))
  return (
    box(
      [x - size * 0.03, foot - size * 0.66, size * 0.06, size * 0.66],
      hex(mix(palette.front, palette.ink, 0.5)),
    ) +
    (ball(0, 0, 0.32, dark) + ball(-0.2, 0.12, 0.2, dark) + ball(0.2, 0.1, 0.21, dark)) +
    ball(light.side * 0.06, -0.05, 0.25, shade) +
    ball(light.side * 0.13, -0.1, 0.14, mix(shade, palette.light, 0.2))
  )
}

/** Draws a cloud with a flat base. */
export function cloud(
  x: number,
  foot: number,
  length: number,
  random: Random,
  shade: string,
  opacity: number,
): string {
  const puffs = [0.1, 0.3, 0.5, 0.7, 0.9].map((share) => {
    const radius = length * (0.1 + 0.11 * Math.sin(share * Math.PI)) * between(random, 0.75, 1.2)
    const rise = radius * between(random, 0.35, 0.9)
    return svg`M${x + (share - 0.5) * length * 0.82 - radius} ${foot}v${-rise}a${radius} ${radius} 0 0 1 ${radius * 2} 0v${rise}Z`
  })
  return path(
    svg`M${x - length / 2} ${foot}v${-length * 0.06}h${length}v${length * 0.06}Z${puffs.join('')}`,
    shade,
    opacity,
  )
}

/** Three lines of land, the furthest first: heights, sizes of the trees on them, their density, and the rocky lines. */
const RELIEFS = {
  hills: [[130, 110, 60], [46, 92, 0], 0.3, 0],
  mountains: [[420, 230, 60], [0, 0, 74], 0.5, 2],
  forest: [[50, 50, 50], [230, 330, 0], 1.2, 0],
  desert: [[90, 130, 90], [0, 0, 0], 0, 0],
  space: [[60, 150, 50], [0, 0, 0], 0, 2],
} as const

export function drawLand(stage: Stage, random: Random): Ground {
  const { palette, place, scale, reading, width, height } = stage
  if (place === 'sky') return cloudTops(stage, random)
  const [heights, woods, density, rocky] = RELIEFS[place as keyof typeof RELIEFS]
  const isBare = place === 'desert' || place === 'space'
  const isWhite = reading.season === 'winter' && !isBare
  const isLeafy =
    reading.season === 'autumn' || reading.season === 'spring' || (!reading.season && random() < 0.3)
  const isRound = !isWhite && (place === 'hills' || (place === 'forest' && isLeafy))
  const dark = isWhite
    ? mix(palette.ink, colour(0.5, 0.05, 190), 0.6)
    : mix(palette.middle, palette.front, 0.2)
  const hills = heights.map((tall, at) => {
    const line = ridge(random, below(stage, 0.04 + at * 0.19), tall * scale, at < rocky)
    const shade = [palette.far, palette.middle, palette.near][at] ?? palette.near
    const [size, leaves] = [
      (woods[at] ?? 0) * scale,
      at === 0 ? mix(palette.far, dark, isWhite ? 0.5 : 0.3) : dark,
    ]
    const cap =
      place === 'mountains' && at === 0 && reading.season !== 'summer'
        ? mix(shade, palette.paper, 0.8)
        : shade
    const [base, amount] = at < 2 ? [palette.sky[3], 0.42] : [palette.front, isWhite ? 0.3 : 0.5]
    const growth = size > 0 ? trees(stage, random, line, isRound, size, density, leaves) : ''
    return growth + slope(stage, `slope-${at}`, line, shade, base, amount, cap)
  })
  const foot = ridge(random, height * 0.96, 60)
  let blades = ''
  for (let x = -20; x < width + 20 && !isWhite; x += 12 * between(random, 0.6, 1.5)) {
    const tall = 80 * Math.sqrt(scale) * between(random, 0.35, 1)
    blades += svg`M${x - 5} ${foot(x) + 6}q5 ${-tall / 2} ${tall * between(random, -0.28, 0.34)} ${-tall}
      q5 ${tall / 2} 6 ${tall}Z`
  }
  const strip = hex(isWhite ? mix(palette.near, palette.front, 0.25) : palette.front)
  const trunks = [-8, width + 8].map(
    (x) =>
      svg`M${x - 60} ${height}Q${x - 26} ${height * 0.6} ${x - 40} 0h80Q${x + 26} ${height * 0.6} ${x + 60} ${height}Z`,
  )
  return {
    back: (place === 'space' ? planet(stage, random) : '') + hills[0] + hills[1],
    ground: hills[2] ?? '',
    front:
      (place === 'forest' ? path(trunks.join(''), hex(isWhite ? dark : palette.front)) : '') +
      (isBare ? '' : fillBelow(stage, foot, strip) + path(blades, strip)),
  }
}

/** Draws a planet with a ring, and nebulas. */
function planet({ width, palette, horizon, light, scale }: Stage, random: Random): string {
  const mist = [palette.accent, palette.second, palette.sky[3], palette.accent].map((shade, at) =>
    glow(`nebula-${at}`, random() * width, random() * horizon, between(random, 260, 460), hex(shade), 0.36),
  )
  const radius = between(random, 130, 200) * Math.sqrt(scale)
  const [x, y, dark] = [light.x, light.y + radius * 0.6, hex(mix(palette.accent, palette.ink, 0.3))]
  const ring = (sweep: number) =>
    svg`<path d="M${x - radius * 1.8} ${y}a${radius * 1.8} ${radius * 0.4} 0 0 ${sweep} ${radius * 3.6} 0" fill="none"
      stroke="${dark}" stroke-width="${radius * 0.12}" transform="rotate(-14 ${x} ${y})"/>`
  const bands = [-0.5, -0.1, 0.35].map((at) =>
    box([x - radius, y + at * radius, radius * 2, radius * 0.17], dark, 0, 0.6),
  )
  const shadow = circle(
    x - light.side * radius * 0.55,
    y + radius * 0.35,
    radius * 1.12,
    hex(palette.ink),
    0.45,
  )
  return svg`${mist.join('')}${ring(1)}<clipPath id="planet"><circle cx="${x}" cy="${y}" r="${radius}"/></clipPath>
    <g clip-path="url(#planet)">${circle(x, y, radius, hex(palette.accent))}${bands.join('')}${shadow}</g>${ring(0)}`
}

/** Draws the tops of clouds, seen from above. */
function cloudTops(stage: Stage, random: Random): Ground {
  const { width, palette, height } = stage
  const [back = '', middle, ground = ''] = [palette.far, palette.middle, palette.near].map((shade, at) => {
    const [y, length, white] = [
      below(stage, 0.12 + at * 0.3),
      (300 + at * 110) * stage.scale,
      hex(mix(shade, palette.light, 0.4)),
    ]
    const puffs = Array.from({ length: Math.ceil((width * 2.6) / length) + 2 }, (_, puff) =>
      cloud(
        puff * length * 0.4 - 60,
        y + between(random, -14, 14),
        length * between(random, 0.8, 1.3),
        random,
        white,
        1,
      ),
    )
    return box([-20, y - 4, width + 40, height], white) + puffs.join('')
  })
  return { back: back + middle, ground, front: '' }
}
