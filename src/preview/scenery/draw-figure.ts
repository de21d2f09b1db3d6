// Draws one lit figure: with its shadow on the ground, with its reflection in the water, or behind a ledge.
import type { Figure } from '../cast/body.js'
import type { Stance } from '../cast/cast-list.js'
import { ICON_BOX } from '../cast/icons.js'
import { hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { short } from './drawing.js'
import { inLight, silhouette } from './lighting.js'
import type { Stage } from './stage.js'

/** A figure's centre and foot in stage units, and a prefix for its ids in the document. */
export interface FigureSpot {
  readonly x: number
  readonly foot: number
  readonly size: number
  readonly name: string
  readonly air: number
  readonly random: Random
}

export function drawFigure(
  stage: Stage,
  figure: Figure,
  stance: Stance,
  { x, foot, size, name, air, random }: FigureSpot,
): string {
  const { palette, light } = stage
  const scale = size / figure.height
  // The figures look to the left; on the left side they are mirrored, to look into the picture.
  const flip = x < stage.width * 0.47 ? -1 : 1
  const sunk = stance === 'float' && stage.place === 'sea' ? 5 : 0
  const lift = figure.height === ICON_BOX ? 2 : 0
  const put = (down: number) =>
    `translate(${short(x)} ${short(foot)}) scale(${(flip * scale).toFixed(4)} ${(down * scale).toFixed(4)}) translate(${-figure.width / 2} ${-(figure.height - lift - sunk)})`
  const rim = size * (palette.hour === 'day' || palette.hour === 'grey' ? 0.006 : 0.011)
  const edge = `<g opacity="${palette.hour === 'grey' ? 0.3 : 0.75 * (1 - air)}" transform="translate(${short(light.side * rim)} ${short(-rim * 0.6)}) ${put(1)}">${silhouette(figure.drawing, palette.light)}</g>`
  const fromRight = light.side > 0 === flip > 0
  const lit = inLight(figure.drawing, palette, { id: `lit-${name}`, ...figure, fromRight, air })
  const body = `${edge}<g transform="${put(1)}">${lit}</g>`
  if (stance === 'float' && stage.place === 'sea')
    return afloat(stage, body, put(-1), figure, { x, foot, size, name, air, random })
  if (stance === 'fly') return body
  const width = (size * figure.width) / figure.height
  const strength = palette.hour === 'grey' ? 0.2 : palette.hour === 'night' ? 0.3 : 0.34
  const lean = light.side * (palette.hour === 'day' ? -28 : -48)
  const about = `translate(${short(x)} ${short(foot)}) skewX(${lean}) translate(${short(-x)} ${short(-foot)})`
  const lying = put(palette.hour === 'day' ? -0.2 : -0.34)
  const cast = `<g opacity="${strength}" transform="${about}"><g transform="${lying}">${silhouette(figure.drawing, palette.front)}</g></g>`
  const contact =
    `<radialGradient id="contact-${name}"><stop offset="0" stop-color="${hex(palette.front)}" stop-opacity=".5"/><stop offset="1" stop-color="${hex(palette.front)}" stop-opacity="0"/></radialGradient>` +
    `<ellipse cx="${short(x)}" cy="${short(foot)}" rx="${short(width * 0.44)}" ry="${short(width * 0.07)}" fill="url(#contact-${name})"/>`
  const mound = stance === 'bust' && !isSeated(stage, stance) ? ledge(stage, x, foot, width, random) : ''
  const isle = stage.place === 'sea' && !stage.isAshore ? island(stage, x, foot, width) : ''
  return `${isle}${stance === 'bust' || isSeated(stage, stance) ? '' : cast + contact}${body}${mound}`
}

/** Cut off at the waterline, with its reflection below. */
function afloat(
  stage: Stage,
  body: string,
  mirrored: string,
  figure: Figure,
  { x, foot, size, name }: FigureSpot,
): string {
  const { palette } = stage
  const clip = `<clipPath id="above-${name}"><rect x="${short(x - size)}" y="${short(foot - size * 1.2)}" width="${short(size * 2)}" height="${short(size * 1.2)}"/></clipPath>`
  const under = `<clipPath id="under-${name}"><rect x="${short(x - size)}" y="${short(foot)}" width="${short(size * 2)}" height="${short(size * (stage.isAshore ? 0.1 : 0.42))}"/></clipPath>`
  const ripples = [0, 1, 2].map(
    (row) =>
      `<rect x="${short(x - size * (0.42 - row * 0.07))}" y="${short(foot - 3 + row * size * 0.05)}" width="${short(size * (0.84 - row * 0.2))}" height="${short(size * 0.012)}" rx="3" fill="${hex(palette.light)}" fill-opacity="${0.55 - row * 0.14}"/>`,
  )
  return (
    clip +
    under +
    `<g clip-path="url(#under-${name})"><g opacity=".3" transform="${mirrored}">${silhouette(figure.drawing, palette.front)}</g></g>` +
    `<g clip-path="url(#above-${name})">${body}</g>${ripples.join('')}`
  )
}

/** The island under a figure that stands in the sea. */
function island({ palette, light }: Stage, x: number, foot: number, width: number): string {
  const [left, right, base] = [x - width * 0.95, x + width * 0.95, foot + width * 0.24]
  const data = `M${short(left)} ${short(base)}Q${short(x - width * 0.62)} ${short(foot - width * 0.02)} ${short(x - width * 0.3)} ${short(foot)}H${short(x + width * 0.34)}Q${short(x + width * 0.7)} ${short(foot + width * 0.03)} ${short(right)} ${short(base)}Z`
  const rock = mix(palette.front, palette.middle, 0.35)
  const foam = `<rect x="${short(left + 8)}" y="${short(base - 3)}" width="${short(right - left - 16)}" height="5" rx="2.5" fill="${hex(palette.paper)}" fill-opacity=".35"/>`
  const lit = `M${short(x)} ${short(foot)}H${short(x + light.side * width * 0.34)}Q${short(x + light.side * width * 0.7)} ${short(foot + width * 0.03)} ${short(x + light.side * width * 0.95)} ${short(base)}H${short(x + light.side * width * 0.3)}Z`
  return `<path d="${data}" fill="${hex(rock)}"/><path d="${lit}" fill="${hex(palette.light)}" fill-opacity=".16"/>${foam}`
}

/** Hides the lower edge of a figure that is cut off at the chest. */
function ledge({ palette, height }: Stage, x: number, foot: number, width: number, random: Random): string {
  const tall = width * 0.15
  const left = x - width * between(random, 0.75, 1)
  const right = x + width * between(random, 0.75, 1)
  const data = `M${short(left)} ${short(height + 40)}L${short(left + 20)} ${short(foot + tall)}Q${short(left + width * 0.2)} ${short(foot - tall * 1.1)} ${short(x - width * 0.1)} ${short(foot - tall * 0.7)}T${short(right - width * 0.2)} ${short(foot - tall * 0.4)}Q${short(right)} ${short(foot)} ${short(right + 10)} ${short(height + 40)}Z`
  return `<path d="${data}" fill="${hex(mix(palette.front, palette.near, 0.3))}"/><path d="${data}" fill="none" stroke="${hex(palette.light)}" stroke-opacity=".3" stroke-width="3"/>`
}

/** At a table people sit behind it. */
export function isSeated({ place }: Stage, stance: Stance): boolean {
  return place === 'table' && (stance === 'head' || stance === 'bust')
}
