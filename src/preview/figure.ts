// Paints, places, sizes and lights the figures. The first actor is the subject: at a third of the width, on the side away
// from the light. A second one stands beside it in the same scale, and buildings are behind.
import { type Oklch, oklch } from 'culori'
import { STAND_TOP, TABLE_TOP } from './built.js'
import { EMOJI, type Stance } from './emoji.mjs'
import { hexOf, mix } from './palette.js'
import type { Actor } from './read-prompt.js'
import { below, many, type Stage, svg } from './stage.js'

/** The colours of a drawing. */
const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g
const GREY = 0.035
const turn = (from = 0, to = 0): number => ((to - from + 540) % 360) - 180

/**
 * Recolours a figure ("a blue fox"). Changes only its main hue and similar hues; eyes, leaves and wheels keep theirs, and
 * a person the skin and the hair.
 */
export function repaint(body: string, tint: Oklch | undefined, isPerson = false): string {
  if (tint === undefined) return body
  const shades = (body.match(FILL) ?? []).map((text) => oklch(text) as Oklch)
  const isSkin = ({ c, h = 0 }: Oklch) => isPerson && (c <= GREY || (h > 50 && h < 100))
  const coloured = shades.filter((shade) => shade.c > GREY && !isSkin(shade))
  const countAlike = ({ h }: Oklch) => coloured.filter((shade) => Math.abs(turn(h, shade.h)) < 25).length
  // The most frequent hue. Of two, the first is at the bottom, and usually the body.
  const main = coloured.toSorted((one, other) => countAlike(other) - countAlike(one))[0]
  const isPlain = tint.c < 0.05 || main === undefined
  // A figure that is already close to the colour is not changed: "a red fox" stays orange.
  if (!isPlain && Math.abs(turn(main.h, tint.h)) < 25) return body
  // White and black also change the greys, so that a white shoe has no grey sole, but not eyes and teeth.
  const isMain = (shade: Oklch) =>
    !isSkin(shade) &&
    (shade.c > GREY ? Math.abs(turn(main?.h, shade.h)) < 55 : isPlain && shade.l > 0.4 && shade.l < 0.95)
  const lightest = Math.max(...shades.filter(isMain).map(({ l }) => l))
  return body.replace(FILL, (text) => {
    const shade = oklch(text) as Oklch
    if (!isMain(shade)) return text
    if (isPlain) return hexOf({ ...tint, l: tint.l - (lightest - shade.l) * 0.5, c: Math.min(0.12, tint.c) })
    const l = shade.l + (tint.l - lightest) * 0.35
    return hexOf({
      ...tint,
      l,
      c: Math.min(0.19, (shade.c * tint.c) / main.c),
      h: (tint.h ?? 0) + turn(main.h, shade.h) * 0.4,
    })
  })
}

/** Heights of the figures in units, in a middle shot. */
const SIZES = { face: 420, head: 420, bust: 520, stand: 430, fly: 330, float: 400, landmark: 500, thing: 420 }
const TALL = /elephant|giraffe|mammoth|sauropod|t-rex|dragon|bus|locomotive|ferris-wheel|tokyo-tower/

/** Draws the actors behind the ground, and those on it. */
export function drawActors(stage: Stage): readonly [behind: string, onGround: string] {
  const layers: [string, string] = ['', '']
  for (const [index, actor] of stage.reading.actors.entries()) {
    const stance = stanceOf(stage, actor)
    const isBehind = isSeated(stage, stance) || (index > 0 && stance === 'landmark')
    layers[isBehind ? 0 : 1] = drawActor(stage, actor, stance, index) + layers[isBehind ? 0 : 1]
  }
  return layers
}

function stanceOf({ place }: Stage, { name }: Actor): Stance {
  const stance = EMOJI.figures[name]?.stance ?? 'thing'
  const isFloating = place === 'space' || (place === 'underwater' && stance !== 'thing')
  return isFloating && /stand|float|thing|head/.test(stance) ? 'fly' : stance
}

/** Whether the actor sits behind a table. */
const isSeated = ({ place }: Stage, stance: Stance): boolean =>
  place === 'table' && /face|head|bust/.test(stance)

function drawActor(stage: Stage, { name, tint, count }: Actor, stance: Stance, index: number): string {
  const { width, height, framing, hasReferences, margin, light, place } = stage
  const isPerson = /face|bust/.test(stance) || /^(woman|man|person)-/.test(name)
  const isTallFrame = height > width
  const isLarge = TALL.test(name) || (isPerson && stance === 'stand')
  const size =
    SIZES[stance] *
    { wide: 0.75, middle: 1, close: 1.4 }[framing] *
    (index > 0 ? 0.8 : 1) *
    (isLarge ? 1.25 : 1) *
    (isTallFrame ? (count + index > 1 ? 0.85 : 1.25) : 1)
  const side = hasReferences && !isTallFrame ? [0.27, 0.12] : [0.37, 0.73]
  const isCentral = index === 0 && !hasReferences && /studio|table/.test(place)
  const centre = isCentral ? 0.5 : light.side > 0 ? (side[index] ?? 0.5) : 1 - (side[index] ?? 0.5)
  return many(Math.min(5, count), (at) => {
    // The first copy is the last one drawn, in front of the others.
    const copy = Math.min(5, count) - 1 - at
    const spread = (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (count === 1 ? 1 : copy === 0 ? 0.92 : 0.7)
    const edge = Math.min(width / 2, each * 0.56 + width * 0.03 + margin)
    const x = Math.min(width - edge, Math.max(edge, centre * width + spread * size * 0.85))
    const lift = stance === 'fly' ? spread * each * 0.3 : copy === 0 ? 0 : size * 0.07
    const body = repaint(EMOJI.figures[name]?.body ?? '', tint, isPerson)
    return drawFigure(stage, {
      body,
      stance,
      x,
      foot: footOf(stage, stance, each, index) - lift,
      size: each,
      name: `${index}-${copy}`,
    })
  })
}

function footOf(stage: Stage, stance: Stance, size: number, index: number): number {
  const { height, horizon, place, hasReferences } = stage
  if (isSeated(stage, stance)) return height * TABLE_TOP + size * 0.04
  if (place === 'table') return height * TABLE_TOP + 150 - index * 70
  if (place === 'studio' && stance === 'thing' && !hasReferences) return height * STAND_TOP + 12 + index * 30
  if (place === 'studio' && /face|head/.test(stance)) return height * 0.44 + size * 0.5
  if (stance === 'fly') return horizon * 0.5 + size * 0.5
  // The caption hides the lower edge of a figure that ends at the chest.
  if (stance === 'bust' || (place === 'city' && /face|head/.test(stance))) return height + size * 0.02
  if (stance === 'float') return below(stage, 0.55)
  return below(stage, stance === 'landmark' ? 0.55 - index * 0.25 : 0.8 - index * 0.08)
}

/** A figure at its place. */
interface Spot {
  readonly body: string
  readonly stance: Stance
  /** Its centre and foot. */
  readonly x: number
  readonly foot: number
  readonly size: number
  /** Suffix of its ids. */
  readonly name: string
}

function drawFigure(
  { palette, place, light, width }: Stage,
  { body, stance, x, foot, size, name }: Spot,
): string {
  const isAfloat = stance === 'float' && /sea|beach/.test(place)
  // Figures look to the left. Mirror a figure on the left side, so that it looks into the picture.
  const flip = x < width * 0.47 ? -1 : 1
  // Figures have an empty edge of two units. What floats is in the water up to four units above it.
  const put = (down: number) =>
    svg`transform="translate(${x} ${foot}) scale(${flip * size} ${down * size}) scale(.03125) translate(-16 ${isAfloat ? -26 : -30})"`
  const shape = (shade: string, opacity: number, at: string) =>
    `<g opacity="${opacity}" ${at}>${body.replace(FILL, shade)}</g>`
  const [isDay, isFlat] = [palette.hour === 'day', palette.hour === 'grey']
  const strength = { dawn: 0.16, day: 0.12, dusk: 0.24, night: 0.33, grey: 0.2 }[palette.hour]
  const [bright, dim] = palette.hour === 'night' ? [0.45, 0.1] : [1, 0.5]
  const rim = size * (isFlat || isDay ? 0.006 : 0.011)
  // The light of the hour is the shape of the figure again, in a gradient from light to shade. SVG filters look the same
  // but take 100 to 300 ms per figure at 1080p.
  const lit = svg`<linearGradient id="lit-${name}" gradientUnits="userSpaceOnUse" x1="${light.side * flip > 0 ? 32 : 0}" y1="6"
      x2="${light.side * flip > 0 ? 0 : 32}" y2="20"><stop stop-color="${mix(palette.ink, palette.light, bright)}"/>
      <stop offset=".5" stop-color="${mix(palette.ink, palette.light, dim)}"/><stop offset="1" stop-color="${palette.ink}"/></linearGradient>
    <g transform="translate(${light.side * rim} ${-rim * 0.6})">${shape(palette.light, isFlat ? 0.3 : 0.75, put(1))}</g>
    <g ${put(1)}>${body}</g>${shape(`url(#lit-${name})`, strength, put(1))}`
  if (isAfloat)
    return svg`<clipPath id="above-${name}"><path d="M${x - size} ${foot}v${-size * 1.2}h${size * 2}v${size * 1.2}Z"/></clipPath>
      <g clip-path="url(#above-${name})">${lit}</g><path d="M${x - 0.42 * size} ${foot - 2}h${size * 0.84}M${x - 0.34 * size}
      ${foot + 0.05 * size}h${size * 0.68}M${x - 0.26 * size} ${foot + 0.1 * size}h${size * 0.52}" stroke="${palette.light}"
      stroke-width="${size * 0.012}" stroke-opacity=".4" stroke-linecap="round"/>`
  // A hillock or a snowdrift hides the lower edge of a head, and rocks that of a building in the sea.
  const low = stance === 'head' ? 0.11 : 0.08
  const mound = svg`<path d="M-1.1.1q.4-.02.6-.17q.45-.3 1 .02q.2.12.6.15Z" transform="translate(${x} ${foot + size * low}) scale(${size * (place === 'sea' ? 0.62 : 1)})"
    fill="${place === 'sea' ? mix(palette.front, palette.middle, 0.3) : mix(palette.near, palette.light, 0.12)}"/>`
  if (place === 'sea' && stance === 'landmark') return lit + mound
  if (/face|head/.test(stance)) return /studio|table|city/.test(place) ? lit : lit + mound
  if (/fly|bust/.test(stance)) return lit
  const lean = svg`translate(${x} ${foot}) skewX(${light.side * (isDay ? -28 : -48)}) translate(${-x} ${-foot})`
  return `<g transform="${lean}">${shape(palette.front, isFlat ? 0.16 : 0.3, put(isDay ? -0.2 : -0.34))}</g>${lit}`
}
