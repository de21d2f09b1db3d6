// Water: a far shore, a surface with the light on it, a swell in front.
import { hex, mix } from '../colour.js'
import type { Random } from '../random.js'
import { fade, ground, short } from './drawing.js'
import { below, type Land, misty } from './land.js'
import { smoothRidge } from './ridge.js'
import type { Stage } from './stage.js'

export function sea(stage: Stage, random: Random): Land {
  const { width, height, horizon, palette, scale } = stage
  const shore = smoothRidge(random, width, horizon + 4, 46 * scale)
  const flat = [
    { x: -20, y: horizon },
    { x: width + 20, y: horizon },
  ]
  const deep = mix(palette.skyHigh, palette.near, 0.55)
  const water =
    fade('water', horizon, height, [
      [0, hex(mix(palette.skyLow, deep, 0.35))],
      [1, hex(deep)],
    ]) + ground(flat, height + 40, 'url(#water)')
  const glints = Array.from({ length: 46 }, () => {
    const nearness = random() ** 1.6
    const length = 24 + nearness * 200
    const y = horizon + 8 + nearness * (height - horizon)
    return (
      `<rect x="${short(random() * width - length / 2)}" y="${short(y)}" width="${short(length)}" ` +
      `height="${short(2 + nearness * 7)}" rx="3" fill="${hex(palette.light)}" fill-opacity="0.22"/>`
    )
  }).join('')
  const swell = smoothRidge(random, width, below(stage, 0.5), 26 * scale)
  const front = smoothRidge(random, width, below(stage, 0.86), 44 * scale)
  return {
    far: misty(stage, 'far', shore, palette.far),
    middle: `${water}${glints}`,
    near:
      ground(swell, height + 40, hex(mix(deep, palette.near, 0.3))).replace('/>', ' opacity="0.5"/>') +
      ground(front, height + 40, hex(mix(deep, palette.near, 0.75))),
    stand: swell.map(({ x, y }) => ({ x, y: y + 6 })),
  }
}
