// Outlines of mountains and hills.
import { between, type Random } from '../random.js'
import type { Point } from './drawing.js'

const STEPS = 128

/** How far a line of land reaches beyond the frame on both sides, in stage units, so that no edge shows. */
const MARGIN = 20

/** A jagged line, by midpoint displacement. `height` is how far it rises above `base`. */
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

/** A smooth line: the sum of three waves with incommensurable lengths, so that no hill repeats. */
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

/** The height of a line at x. */
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
