// Places, sizes and lights the figures. The first actor is the subject: at a third of the width, on the side away from
// the light. Other actors are further back, and buildings are behind all actors.
import type { Stance } from '../cast/cast-list.js'
import { type Figure, figureOf } from '../cast/figure.js'
import { type Colour, hex, mix, parseHex } from '../colour.js'
import type { Palette } from '../palette.js'
import { between, type Random } from '../random.js'
import type { Actor } from '../read-prompt.js'
import { STAND_TOP, TABLE_TOP } from './built.js'
import { below, box, path, type Stage, svg } from './stage.js'

/** Heights of the figures in stage units. */
const SIZES: Readonly<Record<Stance, Readonly<Record<Stage['framing'], number>>>> = {
  stand: { wide: 310, middle: 430, close: 680 },
  head: { wide: 350, middle: 520, close: 1300 },
  bust: { wide: 350, middle: 520, close: 760 },
  fly: { wide: 230, middle: 330, close: 520 },
  float: { wide: 280, middle: 400, close: 600 },
  landmark: { wide: 420, middle: 540, close: 760 },
  thing: { wide: 320, middle: 420, close: 560 },
}
const TALL = /elephant|giraffe|mammoth|sauropod|t-rex|dragon|bus|locomotive|ferris-wheel|tokyo-tower/

/** Whether the actor sits behind a table. */
const isSeated = ({ place }: Stage, stance: Stance) =>
  place === 'table' && (stance === 'head' || stance === 'bust')

/** Returns the actors behind the hill or the table, and the actors on the ground; the furthest first. */
export function drawActors(stage: Stage, actors: readonly Actor[], random: Random) {
  let [behind, onGround] = ['', '']
  for (const [index, actor] of actors.entries()) {
    const drawing = drawActor(stage, actor, index, random)
    const isFar =
      index > 0 && actor.stance === 'landmark' && stage.place !== 'table' && stage.place !== 'studio'
    if (isFar || isSeated(stage, actor.stance)) behind = drawing + behind
    else onGround = drawing + onGround
  }
  return { behind, onGround }
}

function drawActor(stage: Stage, actor: Actor, index: number, random: Random): string {
  const { width, height, place, palette, framing, hasReferences, cut } = stage
  const floats =
    place === 'underwater' ? /stand|float|fly/ : place === 'space' ? /stand|float|fly|thing/ : /fly/
  const stance = floats.test(actor.stance) ? 'fly' : actor.stance
  const figure = figureOf(actor, palette.accent)
  const isTallFrame = height > width * 1.2
  const rank = index === 0 ? 1 : actor.stance === 'landmark' ? 0.92 : TALL.test(actor.icon) ? 0.85 : 0.62
  let size = SIZES[stance][framing] * rank * Math.max(0.72, Math.min(1, width / 1150, height / 1000 + 0.1))
  if (isTallFrame && actor.count === 1 && index === 0) size *= 1.45
  // A table hides half of the figure.
  if (isSeated(stage, stance)) size *= 1.3
  if (TALL.test(actor.icon)) size *= 1.25
  return Array.from({ length: Math.min(5, actor.count) }, (_, copy) => {
    const spread = copy === 0 ? 0 : (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (actor.count === 1 ? 1 : copy === 0 ? 0.92 : between(random, 0.58, 0.74))
    const margin = Math.min(0.5, (each * figure.width * 0.56) / figure.height / width + 0.04 + cut.x)
    const isBeside = hasReferences && !isTallFrame
    const third = (isBeside ? [0.29, 0.12, 0.44] : [0.37, 0.73, 0.17])[index] ?? 0.5
    const isCentral = index === 0 && !hasReferences && (stage.isStill || place === 'table')
    const centre =
      (isCentral ? 0.5 : stage.light.side > 0 ? third : 1 - third) + (spread * size * 0.85) / width
    const x = Math.min(1 - margin, Math.max(margin, centre)) * width
    const foot =
      footOf(stage, stance, each, index) -
      (stance === 'fly' ? spread * each * 0.3 : copy === 0 ? 0 : size * 0.07)
    const air = index === 0 ? 0 : actor.stance === 'landmark' ? 0.3 : 0.12
    return drawFigure(stage, figure, stance, { x, foot, size: each, name: `${index}-${copy}`, air })
  })
    .reverse()
    .join('')
}

function footOf(stage: Stage, stance: Stance, size: number, index: number): number {
  const { width, height, horizon, place, framing, cut, isAshore } = stage
  const caption = (height > width ? 250 : 165) + height * cut.y
  if (place === 'studio' && index === 0 && stage.isStill) return height * STAND_TOP + 12
  if (place === 'table')
    return Math.min(height - caption * 0.72, height * TABLE_TOP + (index === 0 ? 150 : 56))
  if (stance === 'fly')
    return Math.min(horizon * 0.94, horizon * (framing === 'close' ? 0.62 : 0.5) + size * 0.5)
  if (stance === 'float')
    return (
      Math.min(height - caption * 1.35, below(stage, isAshore ? 0.27 : framing === 'close' ? 0.62 : 0.42)) +
      20
    )
  if (stance === 'bust') return index === 0 ? height - caption * 0.62 : below(stage, 0.5)
  if (index > 0 && place !== 'studio')
    return below(stage, stance !== 'landmark' ? 0.5 : isAshore ? 0.52 : 0.3)
  // In a close shot, the frame crops a standing figure.
  const cropped = stance === 'head' && framing === 'close' ? size * 0.47 : 0
  return Math.min(height - caption * 0.8, below(stage, stance === 'landmark' ? 0.5 : 0.64)) + cropped
}

/** Centre and foot of a figure, and a prefix for its ids. `air` is the amount of haze in front of it, 0 to 1. */
interface Spot {
  readonly x: number
  readonly foot: number
  readonly size: number
  readonly name: string
  readonly air: number
}

function drawFigure(
  stage: Stage,
  figure: Figure,
  stance: Stance,
  { x, foot, size, name, air }: Spot,
): string {
  const { palette, place, isAshore, light } = stage
  const isAfloat = stance === 'float' && (place === 'sea' || place === 'beach')
  const scale = size / figure.height
  const width = scale * figure.width
  // Figures look to the left. Mirror a figure on the left side, so that it looks into the picture.
  const flip = x < stage.width * 0.47 ? -1 : 1
  const base = figure.height - (figure.height === figure.width ? 2 : 0) - (isAfloat ? 4 : 0)
  const put = (down: number) =>
    svg`translate(${x} ${foot}) scale(${(flip * scale).toFixed(4)} ${(down * scale).toFixed(4)}) ` +
    svg`translate(${-figure.width / 2} ${-base})`
  const [isDay, isFlat] = [palette.hour === 'day', palette.hour === 'grey']
  const rim = size * (isFlat || isDay ? 0.006 : 0.011)
  const shape = (shade: Colour, opacity: number, transform: string) =>
    svg`<g opacity="${opacity}" transform="${transform}">${figure.drawing.replace(COLOURS, hex(shade))}</g>`
  const edge = shape(
    palette.light,
    isFlat ? 0.3 : 0.75 * (1 - air),
    svg`translate(${light.side * rim} ${-rim * 0.6}) ${put(1)}`,
  )
  const body = `${edge}<g transform="${put(1)}">${inLight(figure, palette, name, light.side > 0 === flip > 0, air)}</g>`
  if (stance === 'fly' || isSeated(stage, stance)) return body
  if (stance === 'bust') return body + ledge(stage, x, foot, width)
  if (isAfloat) {
    const part = (id: string, y: number, tall: number, drawing: string) =>
      svg`<clipPath id="${id}-${name}"><rect x="${x - size}" y="${y}" width="${size * 2}" height="${tall}"/></clipPath>` +
      `<g clip-path="url(#${id}-${name})">${drawing}</g>`
    const ripples = [0.42, 0.34, 0.26].map((half, at) =>
      box(
        [x - half * size, foot - 3 + at * size * 0.05, half * size * 2, size * 0.012],
        hex(palette.light),
        3,
        half,
      ),
    )
    const mirrored = part('under', foot, size * (isAshore ? 0.1 : 0.42), shape(palette.front, 0.3, put(-1)))
    return mirrored + part('above', foot - size * 1.2, size * 1.2, body) + ripples.join('')
  }
  const lean = svg`translate(${x} ${foot}) skewX(${light.side * (isDay ? -28 : -48)}) translate(${-x} ${-foot})`
  const shadow = `<g transform="${lean}">${shape(palette.front, isFlat ? 0.16 : 0.3, put(isDay ? -0.2 : -0.34))}</g>`
  return (place === 'sea' && !isAshore ? island(stage, x, foot, width) : '') + shadow + body
}

/** Draws the island under a building in the sea. */
function island({ palette, light }: Stage, x: number, foot: number, width: number): string {
  const half = (side: number) =>
    svg`M${x} ${foot}h${side * width * 0.34}q${side * width * 0.36} ${width * 0.03} ${side * width * 0.61} ${width * 0.24}H${x}Z`
  const rock = path(half(-1) + half(1), hex(mix(palette.front, palette.middle, 0.35)))
  const foam = box(
    [x - width * 0.92, foot + width * 0.24 - 3, width * 1.84, 5],
    hex(palette.paper),
    2.5,
    0.35,
  )
  return rock + path(half(light.side), hex(palette.light), 0.16) + foam
}

/** Draws a ledge, which hides the lower edge of a figure that ends at the chest. */
function ledge({ palette, height }: Stage, x: number, foot: number, width: number): string {
  const data =
    svg`M${x - width * 0.9} ${height + 40}V${foot + width * 0.12}
      q${width * 0.3} ${-width * 0.28} ${width * 0.8} ${-width * 0.22}` +
    svg`t${width} ${width * 0.2}V${height + 40}Z`
  return path(data, hex(mix(palette.front, palette.near, 0.3)))
}

const COLOURS = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g

/**
 * Replaces each colour by a gradient from lit to shaded across the whole figure, in the light of the hour. SVG filters
 * look the same but take 100 to 300 ms per figure at 1080p.
 */
export function inLight(
  figure: Figure,
  palette: Palette,
  name: string,
  isFromRight: boolean,
  air: number,
): string {
  const isLow = palette.hour !== 'day' && palette.hour !== 'grey'
  const [from, to] = isFromRight ? [figure.width, 0] : [0, figure.width]
  const gradients = new Map<string, string>()
  const painted = figure.drawing.replace(COLOURS, (text) => {
    const id = `lit-${name}-${text.slice(1)}`
    if (!gradients.has(id)) {
      const own = parseHex(text)
      // White stays white: it takes less of the hour's colour and of the shade.
      const whiteness = own.chroma > 0.04 ? 0 : Math.min(1, Math.max(0, (own.lightness - 0.75) / 0.2))
      const shade = tinted(own, palette, whiteness, air)
      const dark = mix(shade, palette.front, (isLow ? 0.42 : 0.26) * (1 - 0.6 * whiteness))
      const stops = [mix(shade, palette.light, isLow ? 0.3 : 0.2), shade, shade, dark].map(
        (each, at) => `<stop offset="${[0, 0.4, 0.55, 1][at]}" stop-color="${hex(each)}"/>`,
      )
      const box = svg`x1="${from}" y1="${figure.height * 0.2}" x2="${to}" y2="${figure.height * 0.62}"`
      gradients.set(
        id,
        `<linearGradient id="${id}" gradientUnits="userSpaceOnUse" ${box}>${stops.join('')}</linearGradient>`,
      )
    }
    return `url(#${id})`
  })
  return [...gradients.values()].join('') + painted
}

/** Multiplies a colour with the light of the hour, and adds haze. */
function tinted(own: Colour, palette: Palette, whiteness: number, air: number): Colour {
  const channels = (shade: Colour) => [1, 3, 5].map((at) => Number.parseInt(hex(shade).slice(at, at + 2), 16))
  const ambient = channels(mix(palette.ambient, palette.paper, whiteness * 0.5))
  const grey = { ...own, chroma: 0 }
  const lit = channels(palette.isMonochrome ? grey : own).map((value, at) =>
    Math.round((value * (ambient[at] ?? 255)) / 255),
  )
  return mix(
    parseHex(`#${lit.map((value) => value.toString(16).padStart(2, '0')).join('')}`),
    palette.far,
    air,
  )
}
