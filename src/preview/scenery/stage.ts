// What every plane of a scene is drawn upon.
import type { Palette } from '../palette.js'
import type { Location, Season, SkyEvent, Weather } from '../vocabulary.js'

/** How near the camera stands. */
export type Framing = 'wide' | 'middle' | 'close'

/** Where the light comes from; everything in a picture, and every shot of a film, is lit from there. */
export interface Light {
  /** Stage units. */
  readonly x: number
  readonly y: number
  /** -1 from the left, 1 from the right. */
  readonly side: -1 | 1
}

export interface Stage {
  /** Stage units: the shorter side is 1000. */
  readonly width: number
  readonly height: number
  /** Where sky and ground meet, from the top. */
  readonly horizon: number
  /** How much larger than in a wide shot things are drawn. */
  readonly scale: number
  readonly place: Location
  readonly season: Season | undefined
  readonly weather: Weather | undefined
  readonly skyEvent: SkyEvent | undefined
  readonly palette: Palette
  readonly light: Light
  /** Whether the subject is a thing to be looked at, for which a studio has a stand. */
  readonly isStill: boolean
  /** Whether the sea is seen from a beach, because one is named or somebody stands there. */
  readonly isAshore: boolean
  /** Whether that shore is a cliff, on the side away from the light. */
  readonly hasCliff: boolean
  /** Whether the trees are in blossom. */
  readonly isInBlossom: boolean
}

/** The furthest first. `depth` 0 stays almost still when the camera moves, 1 moves the most. */
export interface Plane {
  readonly name: 'sky' | 'far' | 'middle' | 'ground' | 'front'
  readonly depth: number
  /** SVG elements in stage units. */
  readonly drawing: string
}

/** What every place is made of: four drawings, between and before which the actors stand. */
export interface Land {
  readonly far: string
  readonly middle: string
  readonly ground: string
  /** Before the actors, at the foot of the frame. */
  readonly front: string
}

/** A height below the horizon, as a share of what lies below it. */
export function below(stage: Stage, share: number): number {
  return stage.horizon + (stage.height - stage.horizon) * share
}
