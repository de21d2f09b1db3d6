// The stage of one shot, and what is drawn with: random numbers, colours, lines and gradients in SVG. Coordinates are in
// units, so that one drawing works at every size: the shorter side of the frame is 1000 units.
import { createHash } from 'node:crypto'
import { formatHex, interpolate } from 'culori'
import type { Reading } from './read-prompt.js'
import type { Size } from './size.js'
import type { Hour, Place } from './words.js'

/** Returns a number from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number

/** A linear congruential generator, seeded with a hash of the text: small, and the same on every platform. */
export function randomFrom(seed: string): Random {
  let state = createHash('sha256').update(seed).digest().readUInt32LE()
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

export const between = (random: Random, low: number, high: number): number => low + (high - low) * random()

/** Mixes two colours in OKLab, where equal steps look equally large. `amount` 0 returns the first colour, 1 the second. */
export const mix = (one: string, other: string, amount: number) =>
  formatHex(interpolate([one, other], 'oklab')(Math.min(1, Math.max(0, amount))))

/** Colours as `#rrggbb`. */
export interface Palette {
  readonly hour: Hour
  /** How much darker than noon the land is, from 0 to 1. */
  readonly dark: number
  /** The sun, the moon, lamps, and edges that face the light. */
  readonly light: string
  /** The sky from the zenith down to the horizon. */
  readonly zenith: string
  readonly high: string
  readonly low: string
  readonly haze: string
  /** The land, water or streets, the furthest first. `front` is the darkest; white land has blue shadows. */
  readonly far: string
  readonly middle: string
  readonly near: string
  readonly front: string
  /** Objects without a named colour, and the mark of the renderer. */
  readonly accent: string
  /** The background of text, and the text. */
  readonly ink: string
  readonly paper: string
}

/** Values that all shots of a run share. */
export interface Setting {
  readonly seed: string
  readonly hasReferences: boolean
  readonly reading: Reading
  readonly place: Place
  readonly palette: Palette
}

/** How one shot shows the stage. */
export interface View {
  readonly framing: 'wide' | 'middle' | 'close'
  /** Seeds the shapes of hills and clouds. */
  readonly number: number
}

export interface Stage extends Size, Setting, View {
  readonly random: Random
  /** Position of the sun or the moon. `side` is -1 for light from the left, 1 from the right. */
  readonly light: { readonly x: number; readonly y: number; readonly side: number }
  /** Distance of the horizon from the top. */
  readonly horizon: number
  /** Size of objects relative to a wide shot. */
  readonly scale: number
}

/** Drawings behind the figures, and under them. */
export type Layers = readonly [back: string, ground: string]

/** Height of the table and of the stand in a studio, as a share of the stage. */
export const TABLE_TOP = 0.7

/** Returns y below the horizon, at `share` of the distance to the bottom. */
export const below = ({ horizon, height }: Stage, share: number): number =>
  horizon + (height - horizon) * share

/** Template tag for SVG. Rounds numbers to a thousandth of a unit. */
export const svg = (texts: TemplateStringsArray, ...values: readonly (string | number)[]) =>
  String.raw(
    { raw: texts },
    ...values.map((value) => (typeof value === 'number' ? Number(value.toFixed(3)) : value)),
  )

/** Joins `count` drawings. */
export const many = (count: number, draw: (at: number) => string) =>
  Array.from({ length: Math.round(count) }, (_, at) => draw(at)).join('')

/** Strews copies of a shape over the stage, most of them near the smallest size. */
export const strew = (
  { width, height, random }: Stage,
  count: number,
  [small, large]: readonly [number, number],
  shape: string,
) =>
  many(
    count,
    () => svg`<g transform="translate(${random() * width} ${random() * height})
      scale(${small + (large - small) * random() ** 2})">${shape}</g>`,
  )

/** Defines a gradient of evenly spaced colours from the top of a shape to its bottom, used as `url(#name)`. */
export const fade = (name: string, ...shades: readonly string[]) =>
  `<linearGradient id="${name}" x2="0" y2="1">${stops(shades)}</linearGradient>`

/** A colour with an opacity is `#rrggbbaa`. */
const stops = (shades: readonly string[]) =>
  many(
    shades.length,
    (at) => svg`<stop offset="${at / (shades.length - 1)}" stop-color="${shades[at] ?? ''}"/>`,
  )

/** Draws a round glow. */
export const glow = (name: string, x: number, y: number, radius: number, shade: string) =>
  svg`<radialGradient id="${name}">${stops([`${shade}b0`, `${shade}48`, `${shade}18`, `${shade}00`])}</radialGradient>
    <circle cx="${x}" cy="${y}" r="${radius}" fill="url(#${name})"/>`

/** Fills the stage from `top` down to its bottom with a gradient. */
export const floor = ({ width, height }: Size, name: string, top: number, ...shades: readonly string[]) =>
  svg`${fade(name, ...shades)}<path d="M-20 ${top}h${width + 40}V${height}H-20Z" fill="url(#${name})"/>`

/** Returns y at x. */
export type Line = (x: number) => number

/** Returns the outline of land: the sum of waves with incommensurable lengths, so that none repeats. */
export function ridge(random: Random, base: number, tall: number, isRocky = false): Line {
  const [start, length] = [random() * 7, 700 + random() * 600]
  const wave = (turn: number) => (isRocky ? Math.asin(Math.sin(turn)) / 1.57 : Math.sin(turn))
  return (x) =>
    [0.55, 0.27, 0.12, isRocky ? 0.08 : 0].reduce(
      (y, share, at) => y - (tall / 2) * share * wave((x * 6.28 * 1.73 ** at) / length + start * (at + 1.3)),
      base - tall / 2,
    )
}

/** Fills the stage below a line. */
export const fillBelow = ({ width, height }: Stage, line: Line, fill: string, opacity = 1) =>
  svg`<path d="M-20 ${height + 40}${many(161, (at) => svg`L${at * (width / 160 + 0.25) - 20} ${line(at * (width / 160))}`)}V${height + 40}Z"
    fill="${fill}" fill-opacity="${opacity}"/>`

/** Draws land below a line, turning into `end` at the bottom. `cap` is snow on peaks. */
export const slope = (stage: Stage, name: string, line: Line, shade: string, end: string, cap = shade) =>
  fade(name, cap, mix(cap, shade, 0.7), shade, mix(shade, end, 0.5), end) +
  fillBelow(stage, line, `url(#${name})`)
