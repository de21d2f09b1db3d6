// Draws shapes that several places share: outlines of mountains and hills, ridges with mist, lit edges, trees, grass
// and clouds.
import { type Colour, hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { circle, fade, ground, type Point, path, type Stage, svg } from './stage.js'

/** Draws land that fades into mist towards its base, with a lit edge. */
export function misty(
  stage: Stage,
  name: string,
  line: readonly Point[],
  shade: Colour,
  mist = 0.45,
): string {
  const { palette } = stage
  const top = Math.min(...line.map(({ y }) => y))
  const fall = Math.max(160, (stage.height - stage.horizon) * 0.75)
  const gradient = fade(`mist-${name}`, top, top + fall, [
    [0, hex(mix(shade, palette.light, 0.1))],
    [0.25, hex(shade)],
    [1, hex(mix(shade, palette.sky[3], mist))],
  ])
  return gradient + ground(line, stage.height + 40, `url(#mist-${name})`) + edge(stage, line, 0.3)
}

/** Draws the nearest land, which gets darker towards the caption. */
export function firm(stage: Stage, name: string, line: readonly Point[], shade: Colour): string {
  const top = Math.min(...line.map(({ y }) => y))
  const gradient = fade(`firm-${name}`, top, stage.height, [
    [0, hex(mix(shade, stage.palette.light, 0.16))],
    [0.22, hex(shade)],
    [1, hex(mix(shade, stage.palette.front, stage.season === 'winter' ? 0.22 : 0.5))],
  ])
  return gradient + ground(line, stage.height + 40, `url(#firm-${name})`) + edge(stage, line, 0.4)
}

function edge({ palette, scale }: Stage, line: readonly Point[], opacity: number): string {
  const data = line.map(({ x, y }, index) => svg`${String(index === 0 ? 'M' : 'L')}${x} ${y}`).join('')
  return (
    svg`<path d="${data}" fill="none" stroke="${hex(palette.light)}" stroke-width="${2.2 * scale}"` +
    svg` stroke-opacity="${String(opacity)}"/>`
  )
}

/** Returns one path with leaning blades of grass along a line. */
export function grass(
  stage: Stage,
  random: Random,
  line: readonly Point[],
  tall: number,
  shade: string,
): string {
  const step = Math.max(5, tall * 0.16)
  let data = ''
  for (let x = -20; x < stage.width + 20; x += step * between(random, 0.6, 1.5)) {
    const foot = heightAt(line, x) + 6
    const top = foot - tall * between(random, 0.35, 1)
    const lean = tall * between(random, -0.28, 0.34)
    const half = step * 0.42
    data +=
      svg`M${x - half} ${foot}Q${x} ${(foot + top) / 2} ${x + lean} ${top}` +
      svg`Q${x + half} ${(foot + top) / 2} ${x + half} ${foot}Z`
  }
  return path(data, shade)
}

export function conifer(x: number, foot: number, size: number, shade: string): string {
  // Draw the trunk in the same direction as the tiers, because opposite directions would leave holes.
  let data = svg`M${x - size * 0.025} ${foot}v${-size * 0.2}h${size * 0.05}v${size * 0.2}Z`
  for (let tier = 0; tier < 4; tier++) {
    const bottom = foot - size * (0.1 + tier * 0.2)
    const half = size * (0.24 - tier * 0.05)
    data +=
      svg`M${x - half} ${bottom}Q${x - half * 0.3} ${bottom - size * 0.12} ${x} ${bottom - size * 0.32}` +
      svg`Q${x + half * 0.3} ${bottom - size * 0.12} ${x + half} ${bottom}` +
      svg`Q${x} ${bottom + size * 0.035} ${x - half} ${bottom}Z`
  }
  return path(data, shade)
}

/** Colour of cherry blossom. Blossom is white in black-and-white pictures. */
const PINK = parseHex('#f7b9cc')

export function roundTree(stage: Stage, x: number, foot: number, size: number, leaves: Colour): string {
  const { palette, light } = stage
  const shade = stage.isInBlossom ? mix(leaves, palette.isMonochrome ? palette.paper : PINK, 0.8) : leaves
  const crown = foot - size * 0.66
  const dark = hex(mix(shade, palette.front, 0.25))
  const bright = hex(mix(shade, palette.light, 0.2))
  return (
    path(
      svg`M${x - size * 0.035} ${foot}h${size * 0.07}L${x + size * 0.015} ${crown}h${-size * 0.03}Z`,
      hex(palette.front),
    ) +
    circle(x, crown, size * 0.32, dark) +
    circle(x - size * 0.2, crown + size * 0.12, size * 0.2, dark) +
    circle(x + size * 0.2, crown + size * 0.1, size * 0.21, dark) +
    circle(x + light.side * size * 0.06, crown - size * 0.05, size * 0.25, hex(shade)) +
    circle(x + light.side * size * 0.13, crown - size * 0.1, size * 0.14, bright)
  )
}

/** Draws a cloud with a flat base. */
export function cloud(
  x: number,
  foot: number,
  length: number,
  random: Random,
  fill: string,
  opacity: number,
): string {
  const puffs = 5
  let data = ''
  for (let puff = 0; puff < puffs; puff++) {
    const share = (puff + 0.5) / puffs
    const radius = length * (0.1 + 0.11 * Math.sin(share * Math.PI)) * between(random, 0.75, 1.2)
    const middle = x + (share - 0.5) * length * 0.82
    const rise = radius * between(random, 0.35, 0.9)
    data += svg`M${middle - radius} ${foot}v${-rise}a${radius} ${radius} 0 0 1 ${radius * 2} 0v${rise}Z`
  }
  const bar = length * 0.045
  data +=
    svg`M${x - length / 2} ${foot}a${bar} ${bar} 0 0 1 0 ${-bar * 2}h${length}a${bar} ${bar} 0 0 1 0 ${bar * 2}` +
    'Z'
  return path(data, fill, opacity)
}

const STEPS = 128

/** Length of a line of land beyond the frame on each side, in stage units, so that its ends are not visible. */
const MARGIN = 20

/** Returns a jagged line, made by midpoint displacement. `height` is the height of the line above `base`. */
export function jaggedRidge(random: Random, width: number, base: number, height: number): Point[] {
  const heights = new Array<number>(STEPS + 1).fill(0)
  heights[0] = random()
  heights[STEPS] = random()
  let reach = 0.55
  for (let span = STEPS; span > 1; span /= 2) {
    for (let start = 0; start < STEPS; start += span) {
      const middle = ((heights[start] ?? 0) + (heights[start + span] ?? 0)) / 2
      heights[start + span / 2] = middle + between(random, -reach, reach)
    }
    reach *= 0.52
  }
  const lowest = Math.min(...heights)
  const range = Math.max(...heights) - lowest || 1
  return heights.map((value, index) => at(index, width, base - ((value - lowest) / range) * height))
}

/** Returns a smooth line: the sum of three waves with incommensurable lengths, so that no hill repeats. */
export function smoothRidge(random: Random, width: number, base: number, height: number): Point[] {
  const start = between(random, 0, 7)
  const length = between(random, 700, 1300)
  const waves = [1, 0.45, 0.18].map((share, index) => ({
    share,
    turn: start * (index + 1.3),
    pace: (Math.PI * 2 * 1.73 ** index) / length,
  }))
  return Array.from({ length: STEPS + 1 }, (_, index) => {
    const x = (index / STEPS) * width
    const rise = waves.reduce((sum, wave) => sum + wave.share * Math.sin(x * wave.pace + wave.turn), 0)
    return at(index, width, base - ((rise + 1.63) / 3.26) * height)
  })
}

/** Returns y of a line at x. */
export function heightAt(line: readonly Point[], x: number): number {
  const after = line.findIndex((point) => point.x >= x)
  const right = line[after]
  const left = line[after - 1]
  if (right === undefined || left === undefined) return line[0]?.y ?? 0
  return left.y + ((right.y - left.y) * (x - left.x)) / (right.x - left.x)
}

function at(index: number, width: number, y: number): Point {
  return { x: (index / STEPS) * (width + 2 * MARGIN) - MARGIN, y }
}
