// Positions and sizes of the cast. The first actor is the subject: on a third of the frame, away from the light. Others
// are further back, and buildings behind them all.
import { type Figure, figureWithBody } from '../cast/body.js'
import type { Stance } from '../cast/cast-list.js'
import { ICON_BOX, iconBody } from '../cast/icons.js'
import { repaint } from '../cast/repaint.js'
import { between, type Random } from '../random.js'
import type { Actor } from '../read-prompt.js'
import { drawFigure, isSeated } from './draw-figure.js'
import { STAND_TOP, TABLE_TOP } from './indoors.js'
import { below, type Framing, type Stage } from './stage.js'

/** Heights in stage units. */
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
  /** Behind the ground's own plane, or on it. */
  readonly plane: 'middle' | 'ground'
}

export function placeActors(
  stage: Stage,
  framing: Framing,
  actors: readonly Actor[],
  random: Random,
): readonly PlacedActor[] {
  const placed = actors.flatMap((actor, index) => placeActor(stage, framing, actor, index, random))
  // The furthest first.
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
  // A tall frame has room for a single actor to be larger.
  const alone = stage.height > stage.width * 1.2 && actor.count === 1 ? 1.18 : 1
  const rank = index === 0 ? 1 : actor.stance === 'landmark' ? 0.92 : 0.62
  // Half of a person at a table is hidden.
  const seated = isSeated(stage, actor.stance) ? 1.3 : 1
  const size = SIZES[stance][framing] * rank * Math.max(0.72, room) * alone * seated
  const centre = still && index === 0 ? 0.5 : centreOf(stage, stance, index)
  const count = Math.min(5, actor.count)
  const copies = Array.from({ length: count }, (_, copy) => {
    const spread = copy === 0 ? 0 : (copy % 2 === 1 ? 1 : -1) * Math.ceil(copy / 2)
    const each = size * (count === 1 ? 1 : copy === 0 ? 0.92 : between(random, 0.58, 0.74))
    const across = (each * figure.width) / figure.height
    // A film sees 84 parts in 100 of its stage.
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
  // Behind the hill, or behind the table.
  const behind = isSeated(stage, actor.stance) || (index > 0 && actor.stance === 'landmark' && !still)
  const plane = behind ? ('middle' as const) : ('ground' as const)
  return copies.map((drawing) => ({ drawing, plane }))
}

/** As a share of the width: on a third of the frame, away from the light; the others on both sides of it. */
function centreOf({ light, place, hasCliff }: Stage, stance: Stance, index: number): number {
  const centres = [0.37, 0.73, 0.17]
  // The cliff is on the one side, the sea on the other.
  if (place === 'sea' && hasCliff)
    centres.splice(0, 3, ...(stance === 'float' ? [0.84, 0.76, 0.9] : [0.33, 0.14, 0.47]))
  const centre = centres[index] ?? 0.5
  return light.side > 0 ? centre : 1 - centre
}

/** In space and under water, actors float in the middle of the picture. */
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
  // In a close shot the frame cuts a standing figure off.
  const tall = stance === 'head' && framing === 'close' ? size * 0.47 : 0
  return Math.min(height - caption * 0.8, below(stage, stance === 'landmark' ? 0.5 : 0.64)) + tall
}
