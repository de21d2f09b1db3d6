// Where everyone stands. The first actor is the subject: it stands on a third of the frame, away from the light;
// others stand further back, buildings behind them all.
import { type Figure, figureWithBody } from '../cast/body.js'
import { ICON_BOX, iconBody } from '../cast/icons.js'
import { repaint } from '../cast/repaint.js'
import type { Stance } from '../cast/roles.js'
import { hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import type { Actor } from '../words.js'
import { short } from './drawing.js'
import { STAND_TOP, TABLE_TOP } from './indoors.js'
import { inLight, silhouette } from './lighting.js'
import { below, type Framing, type Stage } from './stage.js'

/** Heights in stage units. A tall landmark is higher than a frame that looks closely has room for. */
const SIZES: Readonly<Record<Stance, Readonly<Record<Framing, number>>>> = {
  stand: { wide: 290, middle: 430, close: 680 },
  head: { wide: 330, middle: 520, close: 1300 },
  bust: { wide: 330, middle: 520, close: 760 },
  fly: { wide: 230, middle: 330, close: 520 },
  float: { wide: 270, middle: 400, close: 600 },
  landmark: { wide: 400, middle: 540, close: 760 },
  thing: { wide: 300, middle: 400, close: 560 },
}

export interface Placed {
  readonly drawing: string
  /** Behind the ground's own plane, or on it. */
  readonly plane: 'middle' | 'ground'
}

export function placeActors(
  stage: Stage,
  framing: Framing,
  actors: readonly Actor[],
  random: Random,
): readonly Placed[] {
  const placed = actors.flatMap((actor, index) => placeActor(stage, framing, actor, index, random))
  // The furthest first.
  return placed.reverse()
}

function placeActor(stage: Stage, framing: Framing, actor: Actor, index: number, random: Random): Placed[] {
  const still = stage.place === 'table' || stage.place === 'studio'
  const stance =
    stage.place === 'underwater' || stage.place === 'space' ? drifting(actor.stance) : actor.stance
  const figure = figureOf(actor, stage)
  const room = Math.min(1, stage.width / 1150, stage.height / 1000 + 0.1)
  // A tall frame has room above, and one alone may fill it.
  const alone = stage.height > stage.width * 1.2 && actor.count === 1 ? 1.18 : 1
  const rank = index === 0 ? 1 : actor.stance === 'landmark' ? 0.92 : 0.62
  const size = SIZES[stance][framing] * rank * Math.max(0.72, room) * alone
  const third = stage.light.side > 0 ? 0.37 : 0.63
  const centre =
    still && index === 0
      ? 0.5
      : ([
          third,
          1 - third + (stage.light.side > 0 ? 0.1 : -0.1),
          third + (stage.light.side > 0 ? -0.2 : 0.2),
        ][index] ?? 0.5)
  const count = Math.min(5, actor.count)
  const copies = Array.from({ length: count }, (_, copy) => {
    const spread = copy === 0 ? 0 : (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (count === 1 ? 1 : copy === 0 ? 0.92 : between(random, 0.58, 0.74))
    const across = (each * figure.width) / figure.height
    const margin = Math.min(0.5, (across * 0.56) / stage.width)
    const x =
      Math.min(1 - margin, Math.max(margin, centre + (spread * size * 0.85) / stage.width)) * stage.width
    const foot =
      footOf(stage, stance, framing, each, index, still) +
      (stance === 'fly' ? -spread * each * 0.3 : copy === 0 ? 0 : -size * 0.07)
    return drawOne(stage, figure, stance, {
      x,
      foot,
      size: each,
      name: `${index}-${copy}`,
      air: index === 0 ? 0 : actor.stance === 'landmark' ? 0.3 : 0.12,
      random,
    })
  })
  // Behind the hill, or behind the table.
  const behind = isSeated(stage, actor.stance) || (index > 0 && actor.stance === 'landmark' && !still)
  const plane = behind ? ('middle' as const) : ('ground' as const)
  return copies.map((drawing) => ({ drawing, plane }))
}

/** At a table people sit behind it. */
function isSeated({ place }: Stage, stance: Stance): boolean {
  return place === 'table' && (stance === 'head' || stance === 'bust')
}

/** Without ground under them, all float in the middle of the picture. */
const drifting = (stance: Stance): Stance =>
  stance === 'bust' || stance === 'head' || stance === 'landmark' ? stance : 'fly'

function figureOf({ icon, stance, tint }: Actor, { palette }: Stage): Figure {
  if (stance === 'head') return figureWithBody(icon, palette.accent)
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
    return Math.min(height - caption, below(stage, 0.42 + (framing === 'close' ? 0.2 : 0)) + 20)
  if (stance === 'bust') return index === 0 ? height - caption * 0.62 : below(stage, 0.5)
  if (index > 0 && stance === 'landmark') return below(stage, 0.3)
  if (index > 0 && !still) return below(stage, 0.5)
  // From near by a standing figure is cut off by the frame, not shrunk into it.
  const tall = stance === 'head' && framing === 'close' ? size * 0.47 : 0
  return Math.min(height - caption * 0.8, below(stage, stance === 'landmark' ? 0.5 : 0.64)) + tall
}

interface Spot {
  readonly x: number
  readonly foot: number
  readonly size: number
  readonly name: string
  readonly air: number
  readonly random: Random
}

function drawOne(
  stage: Stage,
  figure: Figure,
  stance: Stance,
  { x, foot, size, name, air, random }: Spot,
): string {
  const { palette, light } = stage
  const scale = size / figure.height
  // The set looks to the left; whoever stands on the left looks into the picture.
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
  const isle = stage.place === 'sea' ? island(stage, x, foot, width) : ''
  return `${isle}${stance === 'bust' || isSeated(stage, stance) ? '' : cast + contact}${body}${mound}`
}

/** Cut at the waterline, with its reflection below. */
function afloat(
  stage: Stage,
  body: string,
  mirrored: string,
  figure: Figure,
  { x, foot, size, name }: Spot,
): string {
  const { palette } = stage
  const clip = `<clipPath id="above-${name}"><rect x="${short(x - size)}" y="${short(foot - size * 1.2)}" width="${short(size * 2)}" height="${short(size * 1.2)}"/></clipPath>`
  const under = `<clipPath id="under-${name}"><rect x="${short(x - size)}" y="${short(foot)}" width="${short(size * 2)}" height="${short(size * 0.42)}"/></clipPath>`
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

/** What stands at sea stands on an island. */
function island({ palette, light }: Stage, x: number, foot: number, width: number): string {
  const [left, right, base] = [x - width * 0.95, x + width * 0.95, foot + width * 0.24]
  const data = `M${short(left)} ${short(base)}Q${short(x - width * 0.62)} ${short(foot - width * 0.02)} ${short(x - width * 0.3)} ${short(foot)}H${short(x + width * 0.34)}Q${short(x + width * 0.7)} ${short(foot + width * 0.03)} ${short(right)} ${short(base)}Z`
  const rock = mix(palette.front, palette.middle, 0.35)
  const foam = `<rect x="${short(left + 8)}" y="${short(base - 3)}" width="${short(right - left - 16)}" height="5" rx="2.5" fill="${hex(palette.paper)}" fill-opacity=".35"/>`
  const lit = `M${short(x)} ${short(foot)}H${short(x + light.side * width * 0.34)}Q${short(x + light.side * width * 0.7)} ${short(foot + width * 0.03)} ${short(x + light.side * width * 0.95)} ${short(base)}H${short(x + light.side * width * 0.3)}Z`
  return `<path d="${data}" fill="${hex(rock)}"/><path d="${lit}" fill="${hex(palette.light)}" fill-opacity=".16"/>${foam}`
}

/** A rock, a hedge, a wall: whatever it is, the cut chest is behind it. */
function ledge({ palette, height }: Stage, x: number, foot: number, width: number, random: Random): string {
  const tall = width * 0.15
  const left = x - width * between(random, 0.75, 1)
  const right = x + width * between(random, 0.75, 1)
  const data = `M${short(left)} ${short(height + 40)}L${short(left + 20)} ${short(foot + tall)}Q${short(left + width * 0.2)} ${short(foot - tall * 1.1)} ${short(x - width * 0.1)} ${short(foot - tall * 0.7)}T${short(right - width * 0.2)} ${short(foot - tall * 0.4)}Q${short(right)} ${short(foot)} ${short(right + 10)} ${short(height + 40)}Z`
  return `<path d="${data}" fill="${hex(mix(palette.front, palette.near, 0.3))}"/><path d="${data}" fill="none" stroke="${hex(palette.light)}" stroke-opacity=".3" stroke-width="3"/>`
}
