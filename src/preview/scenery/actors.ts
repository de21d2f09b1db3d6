// Places, sizes and lights the figures. The first actor is the subject: at a third of the width, on the side away from
// the light. Other actors are further back, and buildings are behind all actors.
import type { Stance } from '../cast/cast-list.js'
import { FILL, type Figure, figureOf } from '../cast/figure.js'
import { colour, hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import type { Actor } from '../read-prompt.js'
import { STAND_TOP, TABLE_TOP } from './built.js'
import { below, box, path, type Stage, svg } from './stage.js'

/** Heights of the figures in units, in a wide, a middle and a close shot. */
const SIZES: Readonly<Record<Stance, readonly [number, number, number]>> = {
  stand: [310, 430, 640],
  head: [350, 500, 1250],
  bust: [350, 520, 760],
  fly: [230, 330, 500],
  float: [280, 400, 560],
  landmark: [400, 500, 680],
  thing: [320, 420, 540],
}
const TALL = /elephant|giraffe|mammoth|sauropod|t-rex|dragon|bus|locomotive|ferris-wheel|tokyo-tower/

/** Whether the actor sits behind a table. */
const isSeated = ({ place }: Stage, stance: Stance) =>
  place === 'table' && (stance === 'head' || stance === 'bust')

/** Returns the actors behind the hill or the table, and the actors on the ground; the furthest first. */
export function drawActors(stage: Stage, random: Random) {
  let [behind, onGround] = ['', '']
  for (const [index, actor] of stage.actors.entries()) {
    const isFar = index > 0 && actor.stance === 'landmark' && !/table|studio/.test(stage.place)
    const drawing = drawActor(stage, actor, index, isFar, random)
    if (isFar || isSeated(stage, actor.stance)) behind = drawing + behind
    else onGround = drawing + onGround
  }
  return { behind, onGround }
}

function drawActor(stage: Stage, actor: Actor, index: number, isFar: boolean, random: Random): string {
  const { width, height, place, framing, hasReferences, margin, palette, reading } = stage
  const isFloating = place === 'space' || (place === 'underwater' && actor.stance !== 'thing')
  const stance = isFloating && /stand|float|thing/.test(actor.stance) ? 'fly' : actor.stance
  const plain = figureOf(actor, actor.tint, palette.accent)
  const isSnowy = reading.season === 'winter' && actor.stance === 'landmark'
  const figure = isSnowy ? { ...plain, drawing: plain.drawing.replace(FILL, whiteForGreen) } : plain
  const isTallFrame = height > width
  const rank = index === 0 ? 1 : isFar ? 0.92 : TALL.test(actor.icon) ? 0.85 : 0.62
  const fit = Math.max(0.72, Math.min(1, width / 1150))
  let size = SIZES[stance][['wide', 'middle', 'close'].indexOf(framing)] ?? 0
  size *= rank * fit * (TALL.test(actor.icon) ? 1.25 : 1) * (isSeated(stage, stance) ? 1.3 : 1)
  if (isTallFrame && actor.count === 1 && index === 0) size *= 1.45
  const third = (hasReferences && !isTallFrame ? [0.27, 0.12, 0.42] : [0.37, 0.73, 0.17])[index] ?? 0.5
  const isCentral = index === 0 && !hasReferences && (stage.isStill || place === 'table')
  const centre = isCentral ? 0.5 : stage.light.side > 0 ? third : 1 - third
  const copies = Array.from({ length: Math.min(5, actor.count) }, (_, copy) => {
    const spread = (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (actor.count === 1 ? 1 : copy === 0 ? 0.92 : between(random, 0.58, 0.74))
    const edge = Math.min(width / 2, (each * figure.width * 0.56) / figure.height + width * 0.03 + margin)
    const x = Math.min(width - edge, Math.max(edge, centre * width + spread * size * 0.85))
    const lift = stance === 'fly' ? spread * each * 0.3 : copy === 0 ? 0 : size * 0.07
    const foot = footOf(stage, stance, each, index) - lift
    const air = isFar ? 0.3 : index > 0 ? 0.12 : 0
    // Figures look to the left. Mirror a figure on the left side, so that it looks into the picture.
    const flip = x < width * 0.47 ? -1 : 1
    return drawFigure(stage, { ...figure, stance, x, foot, size: each, flip, air, name: `${index}-${copy}` })
  })
  return copies.reverse().join('')
}

/** Lawns and leaves are white in winter. */
function whiteForGreen(text: string): string {
  const { lightness, chroma, hue } = parseHex(text)
  return chroma > 0.08 && hue > 115 && hue < 180 ? hex(colour(0.9 + lightness * 0.1, 0.01, 240)) : text
}

function footOf(stage: Stage, stance: Stance, size: number, index: number): number {
  const { height, horizon, place, framing, isAshore } = stage
  const isClose = framing === 'close'
  if (place === 'studio' && index === 0 && stage.isStill) return height * STAND_TOP + 12
  if (place === 'table') return Math.min(height * 0.95, height * TABLE_TOP + (index === 0 ? 150 : 56))
  if (stance === 'fly') return Math.min(horizon * 0.94, horizon * (isClose ? 0.62 : 0.5) + size * 0.5)
  // The caption hides the lower edge of a figure that ends at the chest.
  if (stance === 'bust') return height + size * 0.02
  if (stance === 'float') return below(stage, isAshore ? 0.27 : isClose ? 0.75 : 0.5) + 20
  if (index > 0 && place !== 'studio')
    return below(stage, stance !== 'landmark' ? 0.55 : isAshore ? 0.52 : 0.3)
  // In a close shot, the frame crops a standing figure.
  return below(stage, stance === 'landmark' ? 0.55 : 0.8) + (stance === 'head' && isClose ? size * 0.42 : 0)
}

/** A figure at its place. */
interface Spot extends Figure {
  readonly stance: Stance
  /** Its centre and foot. */
  readonly x: number
  readonly foot: number
  readonly size: number
  readonly flip: -1 | 1
  /** Amount of haze in front of it, 0 to 1. */
  readonly air: number
  /** Prefix of its ids. */
  readonly name: string
}

function drawFigure(stage: Stage, spot: Spot): string {
  const { palette, place, light } = stage
  const { stance, drawing, width, height, x, foot, size, flip, air } = spot
  const isAfloat = stance === 'float' && (place === 'sea' || place === 'beach')
  const scale = size / height
  // Icons have an empty edge of two units. What floats is in the water up to four units above it.
  const base = height - (height === width ? 2 : 0) - (isAfloat ? 4 : 0)
  const put = (down: number) =>
    svg`translate(${x} ${foot}) scale(${(flip * scale).toFixed(4)} ${(down * scale).toFixed(4)})
      translate(${-width / 2} ${-base})`
  const shape = (shade: string, opacity: number, transform: string) =>
    svg`<g opacity="${opacity}" transform="${transform}">${drawing.replace(FILL, shade)}</g>`
  const [isDay, isFlat] = [palette.hour === 'day', palette.hour === 'grey']
  const rim = size * (isFlat || isDay ? 0.006 : 0.011)
  const beside = svg`translate(${light.side * rim} ${-rim * 0.6}) ${put(1)}`
  // The light of the hour is the shape of the figure again, in a gradient from light to shade, and half transparent. SVG
  // filters look the same but take 100 to 300 ms per figure at 1080p.
  const strength = SHADES[palette.hour] * (1 - air) + air
  const body =
    shape(hex(palette.light), isFlat ? 0.3 : 0.75 * (1 - air), beside) +
    `<g transform="${put(1)}">${drawing}</g>` +
    shadeOf(stage, spot) +
    shape(`url(#lit-${spot.name})`, strength, put(1))
  if (stance === 'fly' || stance === 'bust' || isSeated(stage, stance)) return body
  if (isAfloat) return afloat(stage, spot, body)
  const lean = svg`translate(${x} ${foot}) skewX(${light.side * (isDay ? -28 : -48)}) translate(${-x} ${-foot})`
  const shadow = shape(hex(palette.front), isFlat ? 0.16 : 0.3, put(isDay ? -0.2 : -0.34))
  const rock = place === 'sea' && !stage.isAshore ? island(stage, x, foot, scale * width) : ''
  return `${rock}<g transform="${lean}">${shadow}</g>${body}`
}

/** How strong light and shade are on a figure. */
const SHADES = { dawn: 0.16, day: 0.12, dusk: 0.24, night: 0.33, grey: 0.2 }

/** Defines the gradient from light to shade. */
function shadeOf({ palette, light }: Stage, { name, width, height, flip, air }: Spot): string {
  const [from, to] = light.side > 0 === flip > 0 ? [width, 0] : [0, width]
  const stops = (palette.hour === 'night' ? [0.45, 0.1, 0] : [1, 0.5, 0]).map((amount, at) => {
    const hazy = mix(mix(palette.ink, palette.light, amount), palette.far, Math.min(1, air * 2))
    return svg`<stop offset="${at / 2}" stop-color="${hazy}"/>`
  })
  const ends = svg`x1="${from}" y1="${height * 0.2}" x2="${to}" y2="${height * 0.62}"`
  return `<linearGradient id="lit-${name}" gradientUnits="userSpaceOnUse" ${ends}>${stops.join('')}</linearGradient>`
}

/** Cuts a figure at the water, and draws ripples around it. */
function afloat({ palette }: Stage, { name, x, foot, size }: Spot, body: string): string {
  const ripples = [0.42, 0.34, 0.26].map((half, at) => {
    const top = foot - 3 + at * size * 0.05
    return box([x - half * size, top, half * size * 2, size * 0.012], palette.light, 3, half)
  })
  const above = svg`<clipPath id="above-${name}"><rect x="${x - size}" y="${foot - size * 1.2}" width="${size * 2}"
    height="${size * 1.2}"/></clipPath><g clip-path="url(#above-${name})">${body}</g>`
  return above + ripples.join('')
}

/** Draws the island under a building in the sea. */
function island({ palette, light }: Stage, x: number, foot: number, width: number): string {
  const half = (side: number) =>
    svg`M${x} ${foot}h${side * width * 0.34}q${side * width * 0.36} ${width * 0.03} ${side * width * 0.61} ${width * 0.24}H${x}Z`
  const rock = path(half(-1) + half(1), mix(palette.front, palette.middle, 0.35))
  const foam = [x - width * 0.92, foot + width * 0.24 - 3, width * 1.84, 5] as const
  return rock + path(half(light.side), palette.light, 0.16) + box(foam, palette.paper, 2.5, 0.35)
}
