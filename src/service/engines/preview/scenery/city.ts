// Two rows of houses along a street; after dark their windows are lit.
import { type Colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { box, ground } from './drawing.js'
import { below, type Land } from './land.js'
import type { Stage } from './stage.js'

export function city(stage: Stage, random: Random): Land {
  const { palette, width, height } = stage
  const street = below(stage, 0.7)
  const floor = [
    { x: -20, y: street },
    { x: width + 20, y: street },
  ]
  return {
    far: houses(stage, random, below(stage, 0.3), [120, 420], palette.far, 0.12),
    middle: houses(stage, random, below(stage, 0.62), [80, 330], palette.middle, 0.4),
    near: ground(floor, height + 40, hex(palette.near)),
    stand: floor.map(({ x, y }) => ({ x, y: y + 8 })),
  }
}

function houses(
  stage: Stage,
  random: Random,
  foot: number,
  tall: [number, number],
  shade: Colour,
  lit: number,
): string {
  const night = stage.palette.hour === 'night' || stage.palette.hour === 'dusk'
  const window = hex(night ? stage.palette.light : mix(shade, stage.palette.ink, 0.35))
  let drawing = ''
  for (let x = -20; x < stage.width + 20; ) {
    const width = between(random, 55, 130) * Math.sqrt(stage.scale)
    const top = foot - between(random, ...tall) * stage.scale
    drawing += box(
      x,
      top,
      width + 1,
      stage.height + 40 - top,
      hex(mix(shade, stage.palette.ink, random() * 0.12)),
    )
    if (random() < 0.25) drawing += box(x + width * 0.46, top - 50, width * 0.06, 52, hex(shade))
    for (let row = top + 16; row < foot - 20; row += 26) {
      for (let column = x + 10; column < x + width - 14; column += 20) {
        if (random() < lit) drawing += box(column, row, 9, 13, window)
      }
    }
    x += width
  }
  return drawing
}
