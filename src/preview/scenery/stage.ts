// The stage: values that all planes of a scene share, basic SVG shapes, and the conversion to pixels. Coordinates are
// in stage units, so that one drawing works at every size: the shorter side of the frame is 1000 units. Numbers are cut
// to a tenth of a unit.
import type Sharp from 'sharp'
import type { Palette } from '../palette.js'
import type { Size } from '../render-request.js'
import type { Location, Season, SkyEvent, Weather } from '../vocabulary.js'

/** Distance of the camera. */
export type Framing = 'wide' | 'middle' | 'close'

/** Position of the light. A picture, or all shots of a film, have one light. */
export interface Light {
  /** In stage units. */
  readonly x: number
  readonly y: number
  /** -1: from the left; 1: from the right. */
  readonly side: -1 | 1
}

export interface Stage {
  /** Width in stage units: the shorter side is 1000. */
  readonly width: number
  readonly height: number
  /** Distance of the horizon from the top, in stage units. */
  readonly horizon: number
  /** Size of objects relative to a wide shot. */
  readonly scale: number
  readonly place: Location
  readonly season: Season | undefined
  readonly weather: Weather | undefined
  readonly skyEvent: SkyEvent | undefined
  readonly palette: Palette
  readonly light: Light
  /** Whether the subject is a thing, which is on a stand in a studio. */
  readonly isStill: boolean
  /** Whether the shore of the sea is visible, because the prompt contains a shore or the subject needs ground. */
  readonly isAshore: boolean
  /** Whether the shore is a cliff, on the side away from the light. */
  readonly hasCliff: boolean
  /** Whether trees are in blossom. */
  readonly isInBlossom: boolean
}

/** A plane with `depth` 0 moves least with the camera, a plane with 1 moves most. */
export interface Plane {
  readonly name: 'sky' | 'far' | 'middle' | 'ground' | 'front'
  readonly depth: number
  /** SVG elements in stage units. */
  readonly drawing: string
}

/** Drawings of a place. Actors are drawn between them. */
export interface Land {
  readonly far: string
  readonly middle: string
  readonly ground: string
  /** Drawing in front of the actors, at the bottom of the frame. */
  readonly front: string
}

/** Returns y below the horizon, at `share` of the distance to the bottom. */
export function below(stage: Stage, share: number): number {
  return stage.horizon + (stage.height - stage.horizon) * share
}

export interface Point {
  readonly x: number
  readonly y: number
}

export function path(data: string, fill: string, opacity = 1): string {
  return `<path d="${data}" fill="${fill}"${opacity === 1 ? '' : ` fill-opacity="${opacity}"`}/>`
}

export function polygon(points: readonly Point[], fill: string, opacity = 1): string {
  return path(`${lines(points)}Z`, fill, opacity)
}

export function circle(x: number, y: number, radius: number, fill: string, opacity = 1): string {
  const shade = opacity === 1 ? '' : ` fill-opacity="${opacity}"`
  return svg`<circle cx="${x}" cy="${y}" r="${radius}" fill="${fill}"${shade}/>`
}

export function box(x: number, y: number, width: number, height: number, fill: string, radius = 0): string {
  const round = radius === 0 ? '' : svg` rx="${radius}"`
  return svg`<rect x="${x}" y="${y}" width="${width}" height="${height}"${String(round)} fill="${fill}"/>`
}

/** Fills the area below a line, down to `bottom`. */
export function ground(line: readonly Point[], bottom: number, fill: string): string {
  const first = line[0]?.x ?? 0
  const last = line.at(-1)?.x ?? 0
  return path(svg`${String(lines(line))}L${last} ${bottom}L${first} ${bottom}Z`, fill)
}

/** Defines a gradient from `top` to `bottom` (y in stage units), used as `url(#name)`. */
export function fade(
  name: string,
  top: number,
  bottom: number,
  stops: readonly (readonly [number, string])[],
): string {
  const list = stops.map(([offset, shade]) => `<stop offset="${offset}" stop-color="${shade}"/>`).join('')
  const place = svg`x1="0" x2="0" y1="${top}" y2="${bottom}" gradientUnits="userSpaceOnUse"`
  return `<linearGradient id="${name}" ${place}>${list}</linearGradient>`
}

/** Template tag for SVG. Cuts numbers to a tenth of a unit. */
export function svg(texts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return texts.reduce((text, next, at) => {
    const value = values[at - 1] ?? ''
    return text + (typeof value === 'number' ? short(value) : value) + next
  })
}

export function short(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function lines(points: readonly Point[]): string {
  return points.map(({ x, y }, index) => svg`${String(index === 0 ? 'M' : 'L')}${x} ${y}`).join('')
}

/** Returns a drawing as an SVG document of exactly `size` pixels. */
export function stageSvg(size: Size, stage: Size, drawing: string): Buffer {
  const view = `viewBox="0 0 ${stage.width} ${stage.height}" preserveAspectRatio="none"`
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}"` +
      ` height="${size.height}" ${view}>${drawing}</svg>`,
  )
}

/**
 * Loads sharp with the first picture. Its cache is disabled: no drawing is repeated, so the cache would only use
 * memory.
 */
export async function pixels(): Promise<typeof Sharp> {
  const { default: sharp } = await import('sharp')
  sharp.cache(false)
  return sharp
}
