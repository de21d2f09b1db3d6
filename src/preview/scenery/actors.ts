// Positions and sizes of the actors. The first actor is the subject: at a third of the width, on the side away from the
// light. Other actors are further back, and buildings are behind all actors.
import type { Stance } from '../cast/cast-list.js'
import { type Figure, figureWithBody, ICON_BOX, iconBody, repaint } from '../cast/figure.js'
import { hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import type { Actor } from '../read-prompt.js'
import { STAND_TOP, TABLE_TOP } from './city-and-rooms.js'
import { inLight, silhouette } from './lighting.js'
import { below, type Framing, type Stage, svg } from './stage.js'

/** Heights of the figures in stage units. */
const SIZES: Readonly<Record<Stance, Readonly<Record<Framing, number>>>> = {
  stand: { wide: 290, middle: 430, close: 680 },
  head: { wide: 330, middle: 520, close: 1300 },
  bust: { wide: 330, middle: 520, close: 760 },
  fly: { wide: 230, middle: 330, close: 520 },
  float: { wide: 270, middle: 400, close: 600 },
  landmark: { wide: 400, middle: 540, close: 760 },
  thing: { wide: 300, middle: 400, close: 560 },
}

export interface PlacedActor {
  readonly drawing: string
  /** `middle`: behind the ground. `ground`: on the ground. */
  readonly plane: 'middle' | 'ground'
}

export function placeActors(
  stage: Stage,
  framing: Framing,
  actors: readonly Actor[],
  random: Random,
): readonly PlacedActor[] {
  const placed = actors.flatMap((actor, index) => placeActor(stage, framing, actor, index, random))
  // Return the furthest actor first.
  return placed.reverse()
}

function placeActor(
  stage: Stage,
  framing: Framing,
  actor: Actor,
  index: number,
  random: Random,
): PlacedActor[] {
  const still = stage.place === 'table' || stage.place === 'studio'
  const stance =
    stage.place === 'underwater' || stage.place === 'space' ? drifting(actor.stance) : actor.stance
  const figure = figureOf(actor, stage)
  const room = Math.min(1, stage.width / 1150, stage.height / 1000 + 0.1)
  // A single actor is larger in a tall frame.
  const singleFactor = stage.height > stage.width * 1.2 && actor.count === 1 ? 1.18 : 1
  const rank = index === 0 ? 1 : actor.stance === 'landmark' ? 0.92 : 0.62
  // A person at a table is larger, because the table hides half of the figure.
  const seatedFactor = isSeated(stage, actor.stance) ? 1.3 : 1
  const size = SIZES[stance][framing] * rank * Math.max(0.72, room) * singleFactor * seatedFactor
  const centre = still && index === 0 ? 0.5 : centreOf(stage, stance, index)
  const count = Math.min(5, actor.count)
  const copies = Array.from({ length: count }, (_, copy) => {
    const spread = copy === 0 ? 0 : (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (count === 1 ? 1 : copy === 0 ? 0.92 : between(random, 0.58, 0.74))
    const across = (each * figure.width) / figure.height
    // Films crop to 84 % of the stage.
    const margin = Math.min(0.5, (across * 0.56) / stage.width + 0.08)
    const x =
      Math.min(1 - margin, Math.max(margin, centre + (spread * size * 0.85) / stage.width)) * stage.width
    const foot =
      footOf(stage, stance, framing, each, index, still) +
      (stance === 'fly' ? -spread * each * 0.3 : copy === 0 ? 0 : -size * 0.07)
    return drawFigure(stage, figure, stance, {
      x,
      foot,
      size: each,
      name: `${index}-${copy}`,
      air: index === 0 ? 0 : actor.stance === 'landmark' ? 0.3 : 0.12,
      random,
    })
  })
  // Actors on the middle plane are behind the hill or behind the table.
  const behind = isSeated(stage, actor.stance) || (index > 0 && actor.stance === 'landmark' && !still)
  const plane = behind ? ('middle' as const) : ('ground' as const)
  return copies.map((drawing) => ({ drawing, plane }))
}

/**
 * Returns the centre of an actor as a share of the width. The subject is at a third of the width, away from the light;
 * other actors are on both sides of it.
 */
function centreOf({ light, place, hasCliff }: Stage, stance: Stance, index: number): number {
  const centres = [0.37, 0.73, 0.17]
  // The cliff is on one side, and the sea on the other side.
  if (place === 'sea' && hasCliff)
    centres.splice(0, 3, ...(stance === 'float' ? [0.84, 0.76, 0.9] : [0.33, 0.14, 0.47]))
  const centre = centres[index] ?? 0.5
  return light.side > 0 ? centre : 1 - centre
}

/** Returns the stance in space and under water, where whole figures float. */
const drifting = (stance: Stance): Stance =>
  stance === 'bust' || stance === 'head' || stance === 'landmark' ? stance : 'fly'

function figureOf({ icon, stance, tint }: Actor, { palette }: Stage): Figure {
  if (stance === 'head') return figureWithBody(icon, palette.accent, tint)
  return { width: ICON_BOX, height: ICON_BOX, drawing: repaint(iconBody(icon) ?? '', tint) }
}

function footOf(
  stage: Stage,
  stance: Stance,
  framing: Framing,
  size: number,
  index: number,
  still: boolean,
): number {
  const { height, horizon, place } = stage
  const caption = height > stage.width ? 250 : 165
  if (place === 'studio' && index === 0 && stage.isStill) return height * STAND_TOP + 12
  if (place === 'table')
    return Math.min(height - caption * 0.72, height * TABLE_TOP + (index === 0 ? 150 : 56))
  if (stance === 'fly')
    return Math.min(horizon * 0.94, horizon * (framing === 'close' ? 0.62 : 0.5) + size * 0.5)
  if (stance === 'float')
    return Math.min(
      height - caption * 1.35,
      below(stage, stage.isAshore ? 0.27 : 0.42 + (framing === 'close' ? 0.2 : 0)) + 20,
    )
  if (stance === 'bust') return index === 0 ? height - caption * 0.62 : below(stage, 0.5)
  if (index > 0 && stance === 'landmark') return below(stage, stage.isAshore ? 0.52 : 0.3)
  if (index > 0 && !still) return below(stage, 0.5)
  // In a close shot, the frame crops a standing figure.
  const tall = stance === 'head' && framing === 'close' ? size * 0.47 : 0
  return Math.min(height - caption * 0.8, below(stage, stance === 'landmark' ? 0.5 : 0.64)) + tall
}

/** Centre and foot of a figure in stage units, and a prefix for its ids in the SVG. */
interface FigureSpot {
  readonly x: number
  readonly foot: number
  readonly size: number
  readonly name: string
  readonly air: number
  readonly random: Random
}

function drawFigure(
  stage: Stage,
  figure: Figure,
  stance: Stance,
  { x, foot, size, name, air, random }: FigureSpot,
): string {
  const { palette, light } = stage
  const scale = size / figure.height
  // Figures look to the left. Mirror a figure on the left side, so that it looks into the picture.
  const flip = x < stage.width * 0.47 ? -1 : 1
  const sunk = stance === 'float' && stage.place === 'sea' ? 5 : 0
  const lift = figure.height === ICON_BOX ? 2 : 0
  const put = (down: number) =>
    svg`translate(${x} ${foot}) scale(${(flip * scale).toFixed(4)} ${(down * scale).toFixed(4)}) ` +
    `translate(${-figure.width / 2} ${-(figure.height - lift - sunk)})`
  const rim = size * (palette.hour === 'day' || palette.hour === 'grey' ? 0.006 : 0.011)
  const edge =
    svg`<g opacity="${String(palette.hour === 'grey' ? 0.3 : 0.75 * (1 - air))}"` +
    svg` transform="translate(${light.side * rim} ${-rim * 0.6}) ${put(1)}">${silhouette(figure.drawing, palette.light)}` +
    '</g>'
  const fromRight = light.side > 0 === flip > 0
  const lit = inLight(figure.drawing, palette, { id: `lit-${name}`, ...figure, fromRight, air })
  const body = `${edge}<g transform="${put(1)}">${lit}</g>`
  if (stance === 'float' && stage.place === 'sea')
    return afloat(stage, body, put(-1), figure, { x, foot, size, name, air, random })
  if (stance === 'fly') return body
  const width = (size * figure.width) / figure.height
  const strength = palette.hour === 'grey' ? 0.2 : palette.hour === 'night' ? 0.3 : 0.34
  const lean = light.side * (palette.hour === 'day' ? -28 : -48)
  const transform = svg`translate(${x} ${foot}) skewX(${String(lean)}) translate(${-x} ${-foot})`
  const lying = put(palette.hour === 'day' ? -0.2 : -0.34)
  const cast =
    `<g opacity="${strength}" transform="${transform}"><g` +
    ` transform="${lying}">${silhouette(figure.drawing, palette.front)}</g></g>`
  const contact =
    `<radialGradient id="contact-${name}"><stop offset="0" stop-color="${hex(palette.front)}"` +
    ` stop-opacity=".5"/><stop offset="1" stop-color="${hex(palette.front)}" stop-opacity="0"/>` +
    '</radialGradient>' +
    svg`<ellipse cx="${x}" cy="${foot}" rx="${width * 0.44}" ry="${width * 0.07}"` +
    svg` fill="url(#contact-${name})"/>`
  const mound = stance === 'bust' && !isSeated(stage, stance) ? ledge(stage, x, foot, width, random) : ''
  const isle = stage.place === 'sea' && !stage.isAshore ? island(stage, x, foot, width) : ''
  return `${isle}${stance === 'bust' || isSeated(stage, stance) ? '' : cast + contact}${body}${mound}`
}

/** Draws a figure cropped at the waterline, with its reflection below. */
function afloat(
  stage: Stage,
  body: string,
  mirrored: string,
  figure: Figure,
  { x, foot, size, name }: FigureSpot,
): string {
  const { palette } = stage
  const clip =
    svg`<clipPath id="above-${name}"><rect x="${x - size}" y="${foot - size * 1.2}" width="${size * 2}"` +
    svg` height="${size * 1.2}"/></clipPath>`
  const under =
    svg`<clipPath id="under-${name}"><rect x="${x - size}" y="${foot}" width="${size * 2}"` +
    svg` height="${size * (stage.isAshore ? 0.1 : 0.42)}"/></clipPath>`
  const ripples = [0, 1, 2].map(
    (row) =>
      svg`<rect x="${x - size * (0.42 - row * 0.07)}" y="${foot - 3 + row * size * 0.05}"` +
      svg` width="${size * (0.84 - row * 0.2)}" height="${size * 0.012}" rx="3" fill="${hex(palette.light)}"` +
      svg` fill-opacity="${String(0.55 - row * 0.14)}"/>`,
  )
  return (
    clip +
    under +
    `<g clip-path="url(#under-${name})"><g opacity=".3"` +
    ` transform="${mirrored}">${silhouette(figure.drawing, palette.front)}</g></g>` +
    `<g clip-path="url(#above-${name})">${body}</g>${ripples.join('')}`
  )
}

/** Draws the island under a figure in the sea. */
function island({ palette, light }: Stage, x: number, foot: number, width: number): string {
  const [left, right, base] = [x - width * 0.95, x + width * 0.95, foot + width * 0.24]
  const data =
    svg`M${left} ${base}Q${x - width * 0.62} ${foot - width * 0.02} ${x - width * 0.3} ${foot}` +
    svg`H${x + width * 0.34}Q${x + width * 0.7} ${foot + width * 0.03} ${right} ${base}Z`
  const rock = mix(palette.front, palette.middle, 0.35)
  const foam =
    svg`<rect x="${left + 8}" y="${base - 3}" width="${right - left - 16}" height="5" rx="2.5"` +
    svg` fill="${hex(palette.paper)}" fill-opacity=".35"/>`
  const lit =
    svg`M${x} ${foot}H${x + light.side * width * 0.34}` +
    svg`Q${x + light.side * width * 0.7} ${foot + width * 0.03} ${x + light.side * width * 0.95} ${base}` +
    svg`H${x + light.side * width * 0.3}Z`
  return (
    `<path d="${data}" fill="${hex(rock)}"/><path d="${lit}" fill="${hex(palette.light)}"` +
    ` fill-opacity=".16"/>${foam}`
  )
}

/** Draws a ledge, which hides the lower edge of a figure that ends at the chest. */
function ledge({ palette, height }: Stage, x: number, foot: number, width: number, random: Random): string {
  const tall = width * 0.15
  const left = x - width * between(random, 0.75, 1)
  const right = x + width * between(random, 0.75, 1)
  const data =
    svg`M${left} ${height + 40}L${left + 20} ${foot + tall}` +
    svg`Q${left + width * 0.2} ${foot - tall * 1.1} ${x - width * 0.1} ${foot - tall * 0.7}` +
    svg`T${right - width * 0.2} ${foot - tall * 0.4}Q${right} ${foot} ${right + 10} ${height + 40}Z`
  return (
    `<path d="${data}" fill="${hex(mix(palette.front, palette.near, 0.3))}"/><path d="${data}"` +
    ` fill="none" stroke="${hex(palette.light)}" stroke-opacity=".3" stroke-width="3"/>`
  )
}

/** Whether the actor sits behind a table. */
function isSeated({ place }: Stage, stance: Stance): boolean {
  return place === 'table' && (stance === 'head' || stance === 'bust')
}
