// One row per place: how its three planes of land (or water, or streets) in front of the sky come about.
import { hex } from '../colour.js'
import type { Random } from '../random.js'
import type { Place } from '../vocabulary.js'
import { city } from './city.js'
import { ground, type Point } from './drawing.js'
import { forest } from './forest.js'
import { below, type Land, misty } from './land.js'
import { jaggedRidge, smoothRidge } from './ridge.js'
import { sea } from './sea.js'
import type { Stage } from './stage.js'
import { studio } from './studio.js'

type Line = (random: Random, width: number, base: number, height: number) => Point[]

export const PLACES: Readonly<Record<Place, (stage: Stage, random: Random) => Land>> = {
  mountains: (stage, random) =>
    ridges(stage, random, [jaggedRidge, jaggedRidge, smoothRidge], [300, 190, 70]),
  hills: (stage, random) => ridges(stage, random, [smoothRidge, smoothRidge, smoothRidge], [120, 110, 80]),
  desert: (stage, random) => ridges(stage, random, [smoothRidge, smoothRidge, smoothRidge], [70, 130, 110]),
  space: (stage, random) => ridges(stage, random, [jaggedRidge, smoothRidge, smoothRidge], [110, 60, 50]),
  sea,
  city,
  forest,
  studio,
}

/** The three lines of land stand at these depths below the horizon, as shares of what lies below it. */
const BASES = [0.06, 0.34, 0.72] as const

function ridges(
  stage: Stage,
  random: Random,
  lines: readonly [Line, Line, Line],
  heights: readonly number[],
): Land {
  const [far, middle, near] = lines.map((line, index) =>
    line(random, stage.width, below(stage, BASES[index] ?? 0), (heights[index] ?? 0) * stage.scale),
  ) as [Point[], Point[], Point[]]
  return {
    far: misty(stage, 'far', far, stage.palette.far),
    middle: misty(stage, 'middle', middle, stage.palette.middle),
    near: ground(near, stage.height + 40, hex(stage.palette.near)),
    stand: middle,
  }
}
