// A disc, an arch and a floor: for what has no landscape.
import { hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { circle, fade, ground, path, short } from './drawing.js'
import { below, type Land } from './land.js'
import type { Stage } from './stage.js'

export function studio(stage: Stage, random: Random): Land {
  const { width, height, horizon, palette, scale } = stage
  const x = between(random, 0.3, 0.7) * width
  const radius = between(random, 230, 300) * Math.sqrt(scale)
  const floor = [
    { x: -20, y: below(stage, 0.38) },
    { x: width + 20, y: below(stage, 0.38) },
  ]
  const sheet = between(random, 0.1, 0.7) * width
  return {
    far: circle(x, horizon - 80, radius, hex(mix(palette.skyLow, palette.accent, 0.35))),
    middle: path(
      `M${short(sheet)} ${short(horizon + 150)}V${short(horizon - 190)}a150 150 0 0 1 300 0V${short(horizon + 150)}Z`,
      hex(palette.middle),
      0.85,
    ),
    near:
      fade('floor', below(stage, 0.38), height, [
        [0, hex(mix(palette.skyLow, palette.near, 0.42))],
        [1, hex(palette.near)],
      ]) + ground(floor, height + 40, 'url(#floor)'),
    stand: floor.map((point) => ({ x: point.x, y: below(stage, 0.55) })),
  }
}
