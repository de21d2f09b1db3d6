// The properties of a scene that all its planes are drawn by.
import type { Palette } from '../palette.js'
import type { Location, Season, SkyEvent, Weather } from '../vocabulary.js'

/** The camera's distance. */
export type Framing = 'wide' | 'middle' | 'close'

/** The position of the one light of a picture, and of all shots of a film. */
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
  /** The size of things relative to a wide shot. */
  readonly scale: number
  readonly place: Location
  readonly season: Season | undefined
  readonly weather: Weather | undefined
  readonly skyEvent: SkyEvent | undefined
  readonly palette: Palette
  readonly light: Light
  /** Whether the subject is a thing, which a studio puts on a stand. */
  readonly isStill: boolean
  /** Whether the sea is seen from its shore, because the prompt names one or the subject stands on it. */
  readonly isAshore: boolean
  /** Whether that shore is a cliff, on the side away from the light. */
  readonly hasCliff: boolean
  /** Whether the trees are in blossom. */
  readonly isInBlossom: boolean
}

/** `depth` 0 hardly moves with the camera, 1 moves the most. */
export interface Plane {
  readonly name: 'sky' | 'far' | 'middle' | 'ground' | 'front'
  readonly depth: number
  /** SVG elements in stage units. */
  readonly drawing: string
}

/** The drawings of a place; the actors are drawn between them. */
export interface Land {
  readonly far: string
  readonly middle: string
  readonly ground: string
  /** In front of the actors, at the bottom of the frame. */
  readonly front: string
}

/** A position below the horizon, `share` of the way to the bottom. */
export function below(stage: Stage, share: number): number {
  return stage.horizon + (stage.height - stage.horizon) * share
}
