// What every plane of a scene is drawn upon.
import type { Palette } from '../palette.js'
import type { Place } from '../vocabulary.js'

/** How near the camera stands. */
export type Framing = 'wide' | 'middle' | 'close'

export interface Stage {
  /** Stage units: the shorter side is 1000. */
  readonly width: number
  readonly height: number
  /** Where sky and ground meet, from the top. */
  readonly horizon: number
  /** How much larger than in a wide shot things are drawn. */
  readonly scale: number
  readonly place: Place
  readonly palette: Palette
}

/** The furthest first. `depth` 0 stays almost still when the camera moves, 1 moves the most. */
export interface Plane {
  readonly name: 'sky' | 'far' | 'middle' | 'near'
  readonly depth: number
  /** SVG elements in stage units. */
  readonly drawing: string
}
