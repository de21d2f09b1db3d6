// A scene: sky, three planes of land with the actors between them, and the weather in front. Pure: the same arguments
// give the same drawing.
import type { Stance } from '../cast/cast-list.js'
import { randomFrom } from '../random.js'
import type { Size } from '../sizes.js'
import { placeActors } from './actors.js'
import { LANDS } from './lands.js'
import { drawRoad } from './road.js'
import type { Setting } from './scene-setting.js'
import { drawSky } from './sky.js'
import type { Framing, Light, Plane, Stage } from './stage.js'
import { drawVeil } from './weather.js'

export interface Scene {
  /** Stage units: the shorter side is 1000. */
  readonly width: number
  readonly height: number
  /** The furthest first; the first one is opaque. */
  readonly planes: readonly Plane[]
}

const FRAMINGS: Readonly<Record<Framing, { readonly horizon: number; readonly scale: number }>> = {
  wide: { horizon: 0.56, scale: 1 },
  middle: { horizon: 0.54, scale: 1.25 },
  close: { horizon: 0.58, scale: 1.7 },
}

/** Subjects that need ground to stand on. */
const ASHORE: ReadonlySet<Stance | undefined> = new Set(['stand', 'head', 'bust', 'thing'])

/**
 * The setting holds what the shots of one film share; `number` seeds what differs between shots: the shapes of hills and
 * clouds.
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
