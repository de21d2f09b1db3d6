// Shapes that several places use: ridges with mist, lit edges, trees, grass, clouds.
import { type Colour, hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { circle, fade, ground, type Point, path, short } from './drawing.js'
import { heightAt } from './ridge-lines.js'
import type { Stage } from './stage.js'

/** Land that fades into mist towards its base, with a lit edge. */
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

/** The nearest land, which darkens towards the caption. */
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
  const data = line.map(({ x, y }, index) => `${index === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`).join('')
  return `<path d="${data}" fill="none" stroke="${hex(palette.light)}" stroke-width="${short(2.2 * scale)}" stroke-opacity="${opacity}"/>`
}

/** Leaning blades along a line, as one path. */
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
    data += `M${short(x - half)} ${short(foot)}Q${short(x)} ${short((foot + top) / 2)} ${short(x + lean)} ${short(top)}Q${short(x + half)} ${short((foot + top) / 2)} ${short(x + half)} ${short(foot)}Z`
  }
  return path(data, shade)
}

export function conifer(x: number, foot: number, size: number, shade: string): string {
  // In the same direction as the tiers: opposite directions would leave holes.
  let data = `M${short(x - size * 0.025)} ${short(foot)}v${short(-size * 0.2)}h${short(size * 0.05)}v${short(size * 0.2)}Z`
  for (let tier = 0; tier < 4; tier++) {
    const bottom = foot - size * (0.1 + tier * 0.2)
    const half = size * (0.24 - tier * 0.05)
    data += `M${short(x - half)} ${short(bottom)}Q${short(x - half * 0.3)} ${short(bottom - size * 0.12)} ${short(x)} ${short(bottom - size * 0.32)}Q${short(x + half * 0.3)} ${short(bottom - size * 0.12)} ${short(x + half)} ${short(bottom)}Q${short(x)} ${short(bottom + size * 0.035)} ${short(x - half)} ${short(bottom)}Z`
  }
  return path(data, shade)
}

/** Cherry blossom; white in black-and-white pictures. */
const PINK = parseHex('#f7b9cc')

export function roundTree(stage: Stage, x: number, foot: number, size: number, leaves: Colour): string {
  const { palette, light } = stage
  const shade = stage.isInBlossom ? mix(leaves, palette.isMonochrome ? palette.paper : PINK, 0.8) : leaves
  const crown = foot - size * 0.66
  const dark = hex(mix(shade, palette.front, 0.25))
  const bright = hex(mix(shade, palette.light, 0.2))
  return (
    path(
      `M${short(x - size * 0.035)} ${short(foot)}h${short(size * 0.07)}L${short(x + size * 0.015)} ${short(crown)}h${short(-size * 0.03)}Z`,
      hex(palette.front),
    ) +
    circle(x, crown, size * 0.32, dark) +
    circle(x - size * 0.2, crown + size * 0.12, size * 0.2, dark) +
    circle(x + size * 0.2, crown + size * 0.1, size * 0.21, dark) +
    circle(x + light.side * size * 0.06, crown - size * 0.05, size * 0.25, hex(shade)) +
    circle(x + light.side * size * 0.13, crown - size * 0.1, size * 0.14, bright)
  )
}

/** A cloud with a flat base. */
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
    data += `M${short(middle - radius)} ${short(foot)}v${short(-rise)}a${short(radius)} ${short(radius)} 0 0 1 ${short(radius * 2)} 0v${short(rise)}Z`
  }
  const bar = length * 0.045
  data += `M${short(x - length / 2)} ${short(foot)}a${short(bar)} ${short(bar)} 0 0 1 0 ${short(-bar * 2)}h${short(length)}a${short(bar)} ${short(bar)} 0 0 1 0 ${short(bar * 2)}Z`
  return path(data, fill, opacity)
}
