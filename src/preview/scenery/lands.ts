// The function that draws each place's land.
import type { Random } from '../random.js'
import type { Location } from '../vocabulary.js'
import { city } from './city.js'
import { forest } from './forest.js'
import { desert, hills, mountains } from './highlands.js'
import { studio, table } from './indoors.js'
import { sea, underwater } from './sea.js'
import { abstract, sky, space } from './space-sky-abstract.js'
import type { Land, Stage } from './stage.js'

export const LANDS: Readonly<Record<Location, (stage: Stage, random: Random) => Land>> = {
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
