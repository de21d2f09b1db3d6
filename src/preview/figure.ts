// Paints, places, sizes and lights the figures. The first actor is the subject: at a third of the width, on the side away
// from the light. A second one stands beside it in the same scale, and buildings are behind.
import { formatHex, type Oklch, oklch } from 'culori'
import { EMOJI } from './emoji.mjs'
import { mix } from './palette.js'
import type { Actor } from './read-prompt.js'
import { below, many, STAND_TOP, type Stage, svg, TABLE_TOP } from './stage.js'

/** The colours of a drawing. */
const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g

/**
 * Recolours a figure ("a blue fox"). Changes only its main hue and similar hues; eyes, leaves and wheels keep theirs, and
 * a person the skin and the hair.
 */
export function repaint(body: string, tint: Oklch | undefined, isPerson = false): string {
  if (tint === undefined) return body
  const isGrey = ({ c }: Oklch) => c < 0.035
  const isSkin = (shade: Oklch) => isPerson && (isGrey(shade) || Math.abs((shade.h ?? 0) - 75) < 25)
  const isAlike = (one: Oklch | undefined, other: Oklch, most: number) =>
    Math.abs((((one?.h ?? 0) - (other.h ?? 0) + 540) % 360) - 180) < most
  const shades = (body.match(FILL) ?? []).map((text) => oklch(text) as Oklch).filter((each) => !isSkin(each))
  const coloured = shades.filter((shade) => !isGrey(shade))
  const counted = coloured.map((shade) => coloured.filter((each) => isAlike(each, shade, 25)).length)
  // The most frequent hue. Of two, the first is at the bottom, and usually the body.
  const main = coloured[counted.indexOf(Math.max(...counted))]
  const isPlain = tint.c < 0.05 || main === undefined
  // A figure that is already close to the colour is not changed: "a red fox" stays orange.
  if (!isPlain && isAlike(main, tint, 25)) return body
  // White and black also change the greys, so that a white shoe has no grey sole, but not eyes and teeth.
  const isMain = (shade: Oklch) =>
    !isSkin(shade) && (isGrey(shade) ? isPlain && Math.abs(shade.l - 0.67) < 0.28 : isAlike(main, shade, 55))
  const lightest = Math.max(...shades.filter(isMain).map(({ l }) => l))
  return body.replace(FILL, (text) => {
    const shade = oklch(text) as Oklch
    const l = isPlain ? tint.l - (lightest - shade.l) * 0.5 : shade.l + (tint.l - lightest) * 0.35
    const c = isPlain ? tint.c : Math.min(0.19, (shade.c * tint.c) / main.c)
    return isMain(shade) ? formatHex({ ...tint, l, c }) : text
  })
}

/** Heights of the figures in units, in a middle shot. */
const SIZES = { face: 420, head: 420, bust: 520, stand: 430, fly: 330, float: 400, landmark: 500, thing: 420 }
const TALL = /elephant|giraffe|mammoth|sauropod|t-rex|dragon|bus|locomotive|ferris-wheel|tokyo-tower/

/** Draws the actors behind the ground, and those on it. */
export function drawActors(stage: Stage): readonly [behind: string, onGround: string] {
  const layers: [string, string] = ['', '']
  for (const [index, actor] of stage.reading.actors.entries()) {
    const figure = EMOJI.figures[actor.name]
    if (figure === undefined) continue
    const isAloft = stage.place === 'space' || (stage.place === 'underwater' && figure.stance !== 'thing')
    const stance = isAloft && /stand|float|thing|head/.test(figure.stance) ? 'fly' : figure.stance
    // Behind the table, or behind the subject.
    const isBehind = isSeated(stage, stance) || (index > 0 && stance === 'landmark')
    const layer = isBehind ? 0 : 1
    layers[layer] = drawActor(stage, { ...actor, ...figure, stance, index }) + layers[layer]
  }
  return layers
}

/** An actor with its figure and its position in the prompt. */
type Placed = Actor & { body: string; stance: keyof typeof SIZES; index: number }

const isSeated = ({ place }: Stage, stance: string): boolean =>
  place === 'table' && /face|head|bust/.test(stance)

function drawActor(stage: Stage, actor: Placed): string {
  const { width, height, framing, hasReferences, margin, light, place } = stage
  const { name, count, stance, index } = actor
  const isPerson = /face|bust/.test(stance) || /^(woman|man|person)-/.test(name)
  const isLarge = TALL.test(name) || (isPerson && stance === 'stand')
  const size =
    SIZES[stance] *
    { wide: 0.75, middle: 1, close: 1.4 }[framing] *
    (index > 0 ? 0.8 : 1) *
    (isLarge ? 1.25 : 1) *
    (height < width ? 1 : count + index > 1 ? 0.85 : 1.25)
  const [first, second] = hasReferences && height < width ? [0.27, 0.12] : [0.37, 0.73]
  const share = index > 0 ? second : first
  const isCentral = index === 0 && !hasReferences && /studio|table/.test(place)
  const centre = width * (isCentral ? 0.5 : light.side > 0 ? share : 1 - share)
  const body = repaint(actor.body, actor.tint, isPerson)
  return many(count, (at) => {
    // The first copy is the last one drawn, in front of the others.
    const copy = count - 1 - at
    const spread = (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (count === 1 ? 1 : copy === 0 ? 0.92 : 0.7)
    const edge = Math.min(width / 2, each * 0.56 + width * 0.03 + margin)
    const x = Math.min(width - edge, Math.max(edge, centre + spread * size * 0.85))
    const lift = stance === 'fly' ? spread * each * 0.3 : copy === 0 ? 0 : size * 0.07
    const foot = footOf(stage, stance, each, index) - lift
    return drawFigure(stage, { ...actor, body }, { x, foot, size: each, name: `${index}-${copy}` })
  })
}

function footOf(stage: Stage, stance: string, size: number, index: number): number {
  const { height, horizon, place, hasReferences } = stage
  if (isSeated(stage, stance)) return height * TABLE_TOP + size * 0.04
  if (place === 'table') return height * TABLE_TOP + 150 - index * 70
  if (place === 'studio' && stance === 'thing' && !hasReferences) return height * STAND_TOP + 12 + index * 30
  if (place === 'studio' && /face|head/.test(stance)) return height * 0.44 + size * 0.5
  if (stance === 'fly') return (horizon + size) / 2
  // The caption hides the lower edge of a figure without feet.
  if (/face|head|bust/.test(stance)) return height + size * 0.02
  return below(stage, stance === 'landmark' || stance === 'float' ? 0.55 - index * 0.25 : 0.8 - index * 0.08)
}

/** The centre and the foot of a figure. `name` is the suffix of its ids. */
interface Spot {
  readonly x: number
  readonly foot: number
  readonly size: number
  readonly name: string
}

function drawFigure(stage: Stage, { body, stance }: Placed, { x, foot, size, name }: Spot): string {
  const { palette, place, light, width } = stage
  const isInWater = /sea|beach/.test(place) && stance === 'float'
  // Figures look to the left. Mirror a figure on the left side, so that it looks into the picture.
  const flip = x < width * 0.47 ? -1 : 1
  // Figures have an empty edge of two units. What floats is in the water up to four units above it.
  const put = (down: number) =>
    svg`transform="translate(${x} ${foot}) scale(${flip * size} ${down * size}) scale(.03125) translate(-16 ${isInWater ? -26 : -30})"`
  const shape = (shade: string, opacity: number, at: string) =>
    `<g opacity="${opacity}" ${at}>${body.replace(FILL, shade)}</g>`
  const [isDay, isFlat] = [palette.hour === 'day', palette.hour === 'grey']
  const strength = { dawn: 0.16, day: 0.12, dusk: 0.24, night: 0.33, grey: 0.2 }[palette.hour]
  const rim = size * (isFlat || isDay ? 0.006 : 0.011)
  const lit = svg`<linearGradient id="lit-${name}" x1="${light.side * flip > 0 ? 1 : 0}" x2="${light.side * flip > 0 ? 0 : 1}" y2=".5">
      <stop stop-color="${palette.light}"/><stop offset="1" stop-color="${palette.ink}"/></linearGradient>
    <g transform="translate(${light.side * rim} ${-rim * 0.6})">${shape(palette.light, isFlat ? 0.3 : 0.75, put(1))}</g>
    <g ${put(1)}>${body}</g>${shape(`url(#lit-${name})`, strength, put(1))}`
  if (isInWater)
    return svg`<clipPath id="above-${name}"><path d="M${x - size} ${foot}v${-size * 1.2}h${size * 2}v${size * 1.2}Z"/></clipPath>
      <g clip-path="url(#above-${name})">${lit}</g><path d="M${x - 0.42 * size} ${foot - 2}h${size * 0.84}M${x - 0.34 * size}
      ${foot + 0.05 * size}h${size * 0.68}M${x - 0.26 * size} ${foot + 0.1 * size}h${size * 0.52}" stroke="${palette.light}"
      stroke-width="${size * 0.012}" stroke-opacity=".4" stroke-linecap="round"/>`
  // A building in the sea stands on rocks.
  if (place === 'sea' && stance === 'landmark')
    return svg`${lit}<path d="M-1.1.1q.4-.02.6-.17q.45-.3 1 .02q.2.12.6.15Z" transform="translate(${x} ${foot + size * 0.08}) scale(${size * 0.62})"
      fill="${mix(palette.front, palette.middle, 0.3)}"/>`
  if (/face|head|fly|bust/.test(stance)) return lit
  const lean = svg`translate(${x} ${foot}) skewX(${light.side * (isDay ? -28 : -48)}) translate(${-x} ${-foot})`
  return `<g transform="${lean}">${shape(palette.front, isFlat ? 0.16 : 0.3, put(isDay ? -0.2 : -0.34))}</g>${lit}`
}
