// Paints, places, sizes and lights the figures. The first actor is the subject: at a third of the width, on the side away
// from the light. A second one stands beside it in the same scale, and buildings are behind.
import { differenceEuclidean, formatHex, type Oklch, oklch } from 'culori'
import { EMOJI, type Figure } from './emoji.mjs'
import type { Actor } from './read-prompt.js'
import { below, many, mix, type Stage, svg, TABLE_TOP } from './stage.js'

/** The colours of a drawing. */
const FILL = /#[0-9a-f]{6}\b|#[0-9a-f]{3}\b/g

/** Compares hues, of which pale colours have less. */
const hueDistance = differenceEuclidean('oklch', [0, 0, 1, 0])

/**
 * Recolours a figure ("a blue fox"). Changes only its main hue and similar hues; eyes, leaves and wheels keep theirs, and
 * a person the skin and the hair.
 */
export function repaint(body: string, tint: Oklch | undefined, isPerson = false): string {
  if (tint === undefined) return body
  // White and black also change the greys, so that a white shoe has no grey sole, but not eyes and teeth.
  const isPlain = tint.c < 0.05
  const isKept = ({ l, c, h = 0 }: Oklch) =>
    c < 0.035 ? isPerson || !isPlain || Math.abs(l - 0.67) > 0.28 : isPerson && Math.abs(h - 75) < 25
  const shades = (body.match(FILL) ?? []).map((text) => oklch(text) as Oklch).filter((each) => !isKept(each))
  // The first shape is at the bottom, and usually the body.
  const [main] = shades
  // A figure that is already close to the colour is not changed: "a red fox" stays orange.
  if (main === undefined || (!isPlain && hueDistance(main, tint) < 0.08)) return body
  const lightest = Math.max(...shades.map(({ l }) => l))
  return body.replace(FILL, (text) => {
    const shade = oklch(text) as Oklch
    if (isKept(shade) || hueDistance(main, shade) > 0.15) return text
    const l = (isPlain ? tint.l : (tint.l + lightest) / 2) + (shade.l - lightest) * 0.6
    return formatHex({ ...tint, l, c: Math.min(tint.c, shade.c + 0.05) })
  })
}

/** An actor with its figure, its place in the prompt (0 is the subject), and the height and the centre of a copy. */
type Placed = Actor & Figure & { readonly index: number; readonly x: number }

/** Draws the actors, the subject in front. */
export const drawActors = (stage: Stage) =>
  stage.reading.actors
    .map((actor, index) => {
      const figure = EMOJI.figures[actor.name]
      return figure === undefined ? '' : drawActor(stage, { ...actor, ...figure, index, x: 0 })
    })
    .reverse()
    .join('')

/** Draws an actor as often as the prompt says. */
function drawActor(stage: Stage, actor: Placed) {
  const { width, height, scale, hasReferences, light, place } = stage
  const { count, index, isPerson } = actor
  const isAloft = /space|underwater/.test(place) && /stand|float|head/.test(actor.stance)
  const stance = isAloft ? 'fly' : actor.stance
  const isAlone = count + index === 1
  const grown = height < width ? 1 : isAlone ? 1.25 : 0.85
  const size = actor.size * scale * 0.8 * grown * (isAlone ? 1 : 0.8)
  const share = (0.37 + index * 0.36) * (hasReferences && height < width ? 0.6 : 1)
  const isCentral = isAlone && !hasReferences && /studio|table/.test(place)
  const centre = width * (isCentral ? 0.5 : light.side > 0 ? share : 1 - share)
  const edge = Math.min(width / 2, size * 0.56 + width * 0.06)
  const body = repaint(actor.body, actor.tint, isPerson)
  return many(count, (at) => {
    const x = centre + (at - (count - 1) / 2) * size * 0.8
    const inside = Math.min(width - edge, Math.max(edge, x))
    return drawFigure(stage, { ...actor, body, stance, size, x: inside }, at)
  })
}

function footOf(stage: Stage, { stance, size, index }: Placed) {
  const { height, horizon, place } = stage
  // At the table, or at the end of a studio's floor.
  if (/table (face|head|bust)|studio (face|head)/.test(`${place} ${stance}`))
    return height * TABLE_TOP + size * 0.04
  if (/table|studio/.test(place) && stance === 'thing') return height * TABLE_TOP + 40 + index * 30
  if (stance === 'fly') return (horizon + size) / 2
  // The caption hides the lower edge of a figure without feet.
  if (/face|head|bust/.test(stance)) return height + size * 0.02
  return below(stage, /landmark|float/.test(stance) ? 0.55 - index * 0.25 : 0.8 - index * 0.08)
}

/** Draws a copy of a figure in the light of the hour. */
function drawFigure(stage: Stage, actor: Placed, copy: number) {
  const { body, stance, size, x, index } = actor
  const name = `${index}-${copy}`
  // Every second copy stands further back.
  const foot = footOf(stage, actor) - (copy % 2) * size * (stance === 'fly' ? 0.3 : 0.08)
  const { palette, place, light, width } = stage
  const isInWater = /sea|beach/.test(place) && stance === 'float'
  // Figures look to the left. Mirror a figure on the left side, so that it looks into the picture.
  const flip = x < width * 0.47 ? -1 : 1
  // Figures have an empty edge of two units. What floats is in the water up to four units above it.
  const put = (down: number) =>
    svg`transform="translate(${x} ${foot}) scale(${flip * size} ${down * size}) scale(.03125) translate(-16 ${isInWater ? -26 : -30})"`
  const shape = (shade: string, opacity: number, at: string) =>
    `<g opacity="${opacity}" ${at}>${body.replace(FILL, shade)}</g>`
  const lit = svg`<linearGradient id="lit-${name}" x1="${light.side * flip > 0 ? 1 : 0}" x2="${light.side * flip > 0 ? 0 : 1}" y2=".5">
      <stop stop-color="${palette.light}"/><stop offset="1" stop-color="${palette.ink}"/></linearGradient>
    <g transform="translate(${light.side * size * 0.009} ${size * -0.005})">${shape(palette.light, 0.6, put(1))}</g>
    <g ${put(1)}>${body}</g>${shape(`url(#lit-${name})`, 0.12 + palette.dark * 0.45, put(1))}`
  if (isInWater)
    return svg`<clipPath id="above-${name}"><path d="M${x - size} ${foot}v${-size * 1.2}h${size * 2}v${size * 1.2}Z"/></clipPath>
      <g clip-path="url(#above-${name})">${lit}</g><path d="M-.42 0h.84M-.34.05h.68M-.26.1h.52" transform="translate(${x} ${foot})
      scale(${size})" stroke="${palette.light}" stroke-width=".012" stroke-opacity=".4" stroke-linecap="round"/>`
  // A building in the sea stands on rocks.
  if (place === 'sea' && stance === 'landmark')
    return svg`${lit}<path d="M-1.1.1q.4-.02.6-.17q.45-.3 1 .02q.2.12.6.15Z" transform="translate(${x} ${foot + size * 0.08}) scale(${size * 0.62})"
      fill="${mix(palette.front, palette.middle, 0.3)}"/>`
  if (/face|head|fly|bust/.test(stance)) return lit
  const lean = svg`translate(${x} ${foot}) skewX(${light.side * -38}) translate(${-x} ${-foot})`
  return `<g transform="${lean}">${shape(palette.front, 0.25, put(-0.27))}</g>${lit}`
}
