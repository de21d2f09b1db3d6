// The stage of one shot, and the SVG of lines and gradients. Coordinates are in units, so that one drawing works at every
// size: the shorter side of the frame is 1000 units.
import { mix, type Palette } from './palette.js'
import type { Random } from './random.js'
import type { Reading } from './read-prompt.js'
import type { Size } from './size.js'
import type { Place } from './words.js'

/** Values that all shots of a run share. */
export interface Setting {
  readonly seed: string
  readonly reading: Reading
  readonly place: Place
  readonly palette: Palette
  /** Position of the sun or the moon. `side` is -1 for light from the left, 1 from the right. */
  readonly light: { readonly x: number; readonly y: number; readonly side: -1 | 1 }
}

export interface Stage extends Size, Setting {
  readonly framing: 'wide' | 'middle' | 'close'
  readonly hasReferences: boolean
  /** Units at each side that some frames of a film do not show. */
  readonly margin: number
  readonly random: Random
  /** Distance of the horizon from the top. */
  readonly horizon: number
  /** Size of objects relative to a wide shot. */
  readonly scale: number
}

/** Drawings behind the figures, under them, and in front of them. */
export type Layers = readonly [back: string, ground: string, front?: string]

/** Heights of the table and of the stand in a studio, as shares of the stage. */
export const TABLE_TOP = 0.62
export const STAND_TOP = 0.8

/** Returns y below the horizon, at `share` of the distance to the bottom. */
export const below = ({ horizon, height }: Stage, share: number): number =>
  horizon + (height - horizon) * share

/** Template tag for SVG. Rounds numbers to a hundredth of a unit. */
export const svg = (texts: TemplateStringsArray, ...values: readonly (string | number)[]): string =>
  String.raw(
    { raw: texts },
    ...values.map((value) => (typeof value === 'number' ? Math.round(value * 100) / 100 : value)),
  )

/** Joins `count` drawings. */
export const many = (count: number, draw: (at: number) => string): string =>
  Array.from({ length: Math.round(count) }, (_, at) => draw(at)).join('')

/** Strews copies of a shape over the stage down to `bottom`, most of them near the smallest size. */
export const strew = (
  { width, random }: Stage,
  count: number,
  bottom: number,
  [small, large]: readonly [number, number],
  shape: string,
): string =>
  many(
    count,
    () => svg`<g transform="translate(${random() * width} ${random() * bottom})
      scale(${small + (large - small) * random() ** 2})">${shape}</g>`,
  )

/** Defines a gradient from the top of a shape to its bottom, used as `url(#name)`. Each stop is `offset colour opacity`. */
export const fade = (name: string, stops: string, kind = 'linearGradient x2="0" y2="1"'): string =>
  `<${kind} id="${name}">${stops.replace(
    /(\S+) (#\w+) ?([\d.]*),?/g,
    (_, at, shade, opacity) => `<stop offset="${at}" stop-color="${shade}" stop-opacity="${opacity || 1}"/>`,
  )}</${kind.split(' ')[0]}>`

/** Draws a round glow. */
export const glow = (
  name: string,
  x: number,
  y: number,
  radius: number,
  shade: string,
  strength = 1,
): string =>
  fade(name, svg`0 ${shade} ${strength}, .3 ${shade} ${strength * 0.43}, 1 ${shade} 0`, 'radialGradient') +
  svg`<circle cx="${x}" cy="${y}" r="${radius}" fill="url(#${name})"/>`

/** Fills the stage from `top` down to its bottom with a gradient. */
export const floor = ({ width, height }: Size, name: string, top: number, stops: string): string =>
  fade(name, stops) + svg`<path d="M-20 ${top}h${width + 40}V${height}H-20Z" fill="url(#${name})"/>`

/** Returns y at x. */
export type Line = (x: number) => number

/** Returns the outline of land: the sum of waves with incommensurable lengths, so that none repeats. */
export function ridge(random: Random, base: number, tall: number, isRocky = false): Line {
  const [start, length] = [random() * 7, 700 + random() * 600]
  const shares = isRocky ? [0.48, 0.26, 0.14, 0.08, 0.04] : [0.61, 0.28, 0.11]
  const wave = (turn: number) => (isRocky ? Math.asin(Math.sin(turn)) / 1.57 : Math.sin(turn))
  const sumAt = (x: number) =>
    shares
      .map((share, at) => share * wave((x * 6.28 * 1.73 ** at) / length + start * (at + 1.3)))
      .reduce((sum, each) => sum + each)
  return (x) => base - (tall / 2) * (1 + sumAt(x))
}

/** Fills the stage below a line. */
export const fillBelow = ({ width, height }: Stage, line: Line, fill: string, opacity = 1): string =>
  svg`<path d="M-20 ${height + 40}${many(161, (at) => svg`L${at * (width / 160 + 0.25) - 20} ${line(at * (width / 160))}`)}V${height + 40}Z"
    fill="${fill}" fill-opacity="${opacity}"/>`

/** Draws land below a line: lit at its edge, and turning into `end` at the bottom. `cap` is snow on peaks. */
export const slope = (
  stage: Stage,
  name: string,
  line: Line,
  shade: string,
  end: string,
  cap = shade,
): string =>
  fade(name, `0 ${cap}, .12 ${cap}, .24 ${shade}, .8 ${end}`) +
  fillBelow(stage, line, mix(cap, stage.palette.light, 0.35)) +
  fillBelow(stage, (x) => line(x) + 2.5 * stage.scale, `url(#${name})`)
