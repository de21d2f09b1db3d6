// The stage of one shot, SVG shapes, and the conversion to pixels. Coordinates are in stage units, so that one drawing
// works at every size: the shorter side of the frame is 1000 units.
import type { Sharp } from 'sharp'
import { type Colour, hex } from '../colour.js'
import type { Palette } from '../palette.js'
import type { Actor, Reading } from '../read-prompt.js'
import { even, type Size } from '../size.js'
import type { Place } from '../vocabulary.js'

/** Values that all shots of a run share. */
export interface Setting {
  readonly prompt: string
  /** Seed of the random numbers. */
  readonly seed: string
  readonly reading: Reading
  readonly place: Place
  readonly palette: Palette
  readonly actors: readonly Actor[]
  /** Position of the sun or the moon. `side` is -1 for light from the left, 1 from the right. */
  readonly light: { readonly x: number; readonly y: number; readonly side: -1 | 1 }
}

/** What a caller chooses of a stage: distance of the camera, references, and what the camera may cut off. */
export interface View {
  readonly framing: 'wide' | 'middle' | 'close'
  /** Number of the shot, which seeds the shapes of hills and clouds. */
  readonly number: number
  readonly hasReferences: boolean
  /** Units at each side that some frames of a film do not show. */
  readonly margin: number
}

export interface Stage extends Size, View, Setting {
  /** Distance of the horizon from the top. */
  readonly horizon: number
  /** Size of objects relative to a wide shot. */
  readonly scale: number
  /** Whether the subject is a thing, which is on a stand in a studio. */
  readonly isStill: boolean
  /** Whether the shore of the sea is visible, because the prompt contains a shore or the subject needs ground. */
  readonly isAshore: boolean
}

/** A part of the frame. */
export interface Area extends Size {
  readonly left: number
  readonly top: number
}

/** An opaque picture. Its size in pixels is even. */
export interface Print extends Size {
  readonly input: Buffer
}

/** A print at a place of the frame, in pixels. All numbers are even. */
export type Overlay = Print & Area

/** Puts a print into the middle of an area. */
export const centred = (print: Print, { left, top, width, height }: Area): Overlay => ({
  ...print,
  left: even(left + (width - print.width) / 2),
  top: even(top + (height - print.height) / 2),
})

/** Returns y below the horizon, at `share` of the distance to the bottom. */
export const below = ({ horizon, height }: Stage, share: number): number =>
  horizon + (height - horizon) * share

/** A colour, or a gradient such as `url(#air)`. */
export type Shade = Colour | string

/** Cuts a number to a hundredth of a unit. */
export const short = (value: number): number => Math.round(value * 100) / 100

const textOf = (value: Shade | number): string | number =>
  typeof value === 'number' ? short(value) : typeof value === 'string' ? value : hex(value)

/** Template tag for SVG. Cuts numbers, and formats colours. */
export const svg = (texts: TemplateStringsArray, ...values: readonly (Shade | number)[]): string =>
  String.raw({ raw: texts }, ...values.map(textOf))

export const path = (data: string, fill: Shade, opacity = 1): string =>
  svg`<path d="${data}" fill="${fill}" fill-opacity="${opacity}"/>`

export const circle = (x: number, y: number, radius: number, fill: Shade, opacity = 1): string =>
  svg`<circle cx="${x}" cy="${y}" r="${radius}" fill="${fill}" fill-opacity="${opacity}"/>`

/** Joins `count` drawings. */
export const many = (count: number, draw: (at: number) => string): string =>
  Array.from({ length: Math.round(count) }, (_, at) => draw(at)).join('')

type Box = readonly [x: number, y: number, width: number, height: number]

/** `round` is the radius of the corners. */
export const box = ([x, y, width, height]: Box, fill: Shade, round = 0, opacity = 1): string =>
  svg`<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${round}" fill="${fill}" fill-opacity="${opacity}"/>`

type Stop = readonly [offset: number, shade: Shade, opacity?: number]

const stops = (list: readonly Stop[]): string =>
  list
    .map(([at, shade, seen = 1]) => svg`<stop offset="${at}" stop-color="${shade}" stop-opacity="${seen}"/>`)
    .join('')

/** Defines a gradient from `top` to `bottom`, used as `url(#name)`. */
export const fade = (name: string, top: number, bottom: number, ...list: readonly Stop[]): string =>
  svg`<linearGradient id="${name}" gradientUnits="userSpaceOnUse" x1="0" x2="0" y1="${top}" y2="${bottom}">` +
  `${stops(list)}</linearGradient>`

/** Draws a round glow. */
export function glow(name: string, x: number, y: number, radius: number, shade: Shade, strength = 1) {
  const list = stops([0, 0.3, 1].map((at) => [at, shade, strength * (1 - at) ** 2.4]))
  return `<radialGradient id="${name}">${list}</radialGradient>${circle(x, y, radius, `url(#${name})`)}`
}

/** Fills the stage from `top` down to its bottom with a gradient. */
export const floor = ({ width, height }: Size, name: string, top: number, ...list: readonly Stop[]): string =>
  fade(name, top, height, ...list) + box([-20, top, width + 40, height - top], `url(#${name})`)

/** Fills the whole stage. */
export const fill = ({ width, height }: Size, shade: Shade): string =>
  box([-20, -20, width + 40, height + 40], shade)

/** Turns a drawing into an opaque picture of exactly `size` pixels; `units` is its size in units. */
export async function rasterize(size: Size, units: Size, drawing: string): Promise<Sharp> {
  const document = `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}"
    preserveAspectRatio="none" viewBox="0 0 ${units.width} ${units.height}">${drawing}</svg>`
  return (await pixels())(Buffer.from(document)).removeAlpha()
}

/** Loads sharp with the first picture, without its cache: no drawing is repeated. */
export async function pixels() {
  const { default: sharp } = await import('sharp')
  sharp.cache(false)
  return sharp
}
