// Composes a scene: the sky, three planes of land with the actors between them, and the weather in front. The same
// arguments give the same drawing.
import type { Stance } from '../cast/cast-list.js'
import { hex, mix } from '../colour.js'
import { type Random, randomFrom } from '../random.js'
import type { Size } from '../render-request.js'
import type { Location } from '../vocabulary.js'
import { placeActors } from './actors.js'
import { city, studio, table } from './city-and-rooms.js'
import { desert, forest, hills, mountains } from './countryside.js'
import type { Setting } from './scene-setting.js'
import { sea, underwater } from './sea.js'
import { drawSky, drawVeil } from './sky.js'
import { abstract, sky, space } from './space-sky-abstract.js'
import { below, type Framing, type Land, type Light, type Plane, path, type Stage, svg } from './stage.js'
import { backdrop } from './subject-card.js'

export interface Scene {
  /** Width in stage units: the shorter side is 1000. */
  readonly width: number
  readonly height: number
  /** Planes, the furthest first. The first plane is opaque. */
  readonly planes: readonly Plane[]
}

const FRAMINGS: Readonly<Record<Framing, { readonly horizon: number; readonly scale: number }>> = {
  wide: { horizon: 0.56, scale: 1 },
  middle: { horizon: 0.54, scale: 1.25 },
  close: { horizon: 0.58, scale: 1.7 },
}

/** Stances of subjects that need ground. */
const ASHORE: ReadonlySet<Stance | undefined> = new Set(['stand', 'head', 'bust', 'thing'])

/**
 * `setting` contains the values that all shots of a film share. `number` seeds the differences between shots: the
 * shapes of hills and clouds.
 */
export function composeScene(
  setting: Setting,
  view: { readonly size: Size; readonly framing: Framing; readonly number: number },
): Scene {
  const { reading, place, palette, actors } = setting
  const random = randomFrom(`${setting.seed}\nview ${view.number}`)
  const unit = 1000 / Math.min(view.size.width, view.size.height)
  const width = view.size.width * unit
  const height = view.size.height * unit
  const framing = FRAMINGS[view.framing]
  const aerial = reading.view === 'aerial' ? 0.62 : 1
  const horizon = height * framing.horizon * (place === 'sky' ? 1.06 : aerial)
  const light: Light = {
    x: setting.light.x * width,
    y: setting.light.y * horizon,
    side: setting.light.x < 0.5 ? -1 : 1,
  }
  const { season, weather, skyEvent } = reading
  const stage: Stage = {
    width,
    height,
    horizon,
    scale: framing.scale,
    place,
    season,
    weather,
    skyEvent,
    palette,
    light,
    isStill: actors[0]?.stance === 'thing',
    isInBlossom: reading.isInBlossom,
    isAshore: place === 'sea' && (reading.isBeach || reading.hasCliff || ASHORE.has(actors[0]?.stance)),
    hasCliff: reading.hasCliff,
  }

  const sky = drawSky(stage, random)
  const land = LANDS[place](stage, random)
  const placed = placeActors(stage, view.framing, actors, random)
  const on = (plane: 'middle' | 'ground') =>
    placed.flatMap((each) => (each.plane === plane ? each.drawing : [])).join('')
  return {
    width,
    height,
    planes: [
      { name: 'sky', depth: 0.05, drawing: sky },
      { name: 'far', depth: 0.25, drawing: land.far },
      { name: 'middle', depth: 0.5, drawing: land.middle + on('middle') },
      { name: 'ground', depth: 0.75, drawing: land.ground + drawRoad(stage, actors[0]?.icon) + on('ground') },
      { name: 'front', depth: 1, drawing: land.front + drawVeil(stage, random) },
    ],
  }
}

const LANDS: Readonly<Record<Location, (stage: Stage, random: Random) => Land>> = {
  mountains,
  hills,
  desert,
  sea,
  underwater,
  city,
  forest,
  space,
  sky,
  table,
  studio,
  abstract,
  card: backdrop,
}

const DRIVEN =
  /automobile|taxi|bus|car$|vehicle|truck|engine|ambulance|tractor|motorcycle|bicycle|scooter|rickshaw|biking|skateboard/
const OPEN: ReadonlySet<string> = new Set(['hills', 'mountains', 'desert', 'forest'])

/** Draws a winding road for a subject that drives. */
function drawRoad(stage: Stage, subject: string | undefined): string {
  if (subject === undefined || !DRIVEN.test(subject) || !OPEN.has(stage.place)) return ''
  const { width, height, palette, light } = stage
  const [top, foot] = [below(stage, 0.44), height + 30]
  const shade = hex(mix(palette.front, palette.sky[3], 0.4))
  const side = (offset: number, dash: number) => {
    const points: string[] = []
    for (let step = 0; step <= 40; step++) {
      const near = (step / 40) ** 1.6
      const middle = width * (0.5 + light.side * -0.16 * Math.sin(near * 4.4 + 0.5) * (1.15 - near))
      const half = 8 + near * width * 0.3
      points.push(svg`${middle + offset * half * dash} ${top + near * (foot - top)}`)
    }
    return points
  }
  const [left, right] = [side(-1, 1), side(1, 1)]
  const [from, to] = [side(-1, 0.02), side(1, 0.02)]
  const dashes = Array.from({ length: 10 }, (_, index) => {
    const at = index * 4
    return `M${from[at]}L${from[at + 2]}L${to[at + 2]}L${to[at]}Z`
  })
  return (
    path(`M${left.join('L')}L${right.reverse().join('L')}Z`, shade) +
    path(dashes.join(''), hex(palette.paper), 0.5)
  )
}
