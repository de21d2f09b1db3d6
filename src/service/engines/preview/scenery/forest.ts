// Conifers on two lines of hills, and a clearing in front.
import { type Colour, hex } from '../colour.js'
import { between, type Random } from '../random.js'
import { box, ground, type Point, polygon } from './drawing.js'
import { below, type Land, misty } from './land.js'
import { heightAt, smoothRidge } from './ridge.js'
import type { Stage } from './stage.js'

export function forest(stage: Stage, random: Random): Land {
  const { width, height, palette, scale } = stage
  const [far, middle, near] = [0.02, 0.3, 0.78].map((share) =>
    smoothRidge(random, width, below(stage, share), 60 * scale),
  )
  const wood = (line: readonly Point[], size: number, shade: Colour): string => {
    let drawing = ''
    for (let x = -20; x < width + 20; x += size * between(random, 0.16, 0.34)) {
      drawing += conifer(x, heightAt(line, x) + 10, size * between(random, 0.7, 1.25), hex(shade))
    }
    return drawing
  }
  return {
    far: wood(far ?? [], 170 * scale, palette.far) + misty(stage, 'far', far ?? [], palette.far),
    middle:
      wood(middle ?? [], 260 * scale, palette.middle) + misty(stage, 'middle', middle ?? [], palette.middle),
    near: ground(near ?? [], height + 40, hex(palette.near)),
    stand: (near ?? []).map(({ x, y }) => ({ x, y: y + 6 })),
  }
}

function conifer(x: number, foot: number, size: number, shade: string): string {
  const tiers = [1, 0.72, 0.46].map((share, index) => {
    const bottom = foot - size * 0.12 - index * size * 0.27
    const half = size * 0.2 * share
    return polygon(
      [
        { x: x - half, y: bottom },
        { x, y: bottom - size * 0.42 },
        { x: x + half, y: bottom },
      ],
      shade,
    )
  })
  return box(x - size * 0.02, foot - size * 0.14, size * 0.04, size * 0.16, shade) + tiers.join('')
}
