// One row per place: how its land (or water, or streets) in front of the sky comes about.
import type { Random } from '../random.js'
import type { Place } from '../vocabulary.js'
import { abstract, sky, space } from './beyond.js'
import { city } from './city.js'
import { forest } from './forest.js'
import { studio, table } from './indoors.js'
import { desert, hills, mountains } from './ridges.js'
import { sea, underwater } from './sea.js'
import type { Land, Stage } from './stage.js'

export const PLACES: Readonly<Record<Place, (stage: Stage, random: Random) => Land>> = {
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
}
