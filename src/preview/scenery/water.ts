// Draws the second ground: the sea with or without a beach, and the sea below its surface.
import { type Colour, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { fillBelow, type Layers, type Line, ridge, slope } from './land.js'
import { below, box, circle, fade, floor, many, path, type Stage, svg } from './stage.js'

export function drawSea(stage: Stage, random: Random): Layers {
  const { width, height, horizon, palette, scale, isAshore, light } = stage
  const wave = (share: number, tall: number, dark: number) => {
    const shade = mix(palette.near, palette.front, dark)
    return fillBelow(stage, ridge(random, below(stage, share), tall * scale), shade, 0.42)
  }
  const [edge, high] = [mix(palette.sky[3], palette.near, 0.3), mix(palette.sky[2], palette.near, 0.72)]
  const shore = ridge(random, horizon + 4, 60 * scale)
  const glitter = many(130, (at) => {
    const [near, isRoad] = [(at / 130) ** 1.35, random() < 0.72]
    const x = isRoad ? light.x + between(random, -1, 1) * (26 + near * 190) : random() * width
    const length = (8 + near * 90) * between(random, 0.5, 1.4)
    const y = horizon + 5 + near * (height - horizon) * 0.9
    return box([x - length / 2, y, length, 1.6 + near * 5], palette.light, 3, isRoad ? 0.5 : 0.14)
  })
  return {
    back:
      slope(stage, 'shore', shore, palette.far, mix(palette.far, palette.sky[3], 0.2)) +
      floor(stage, 'water', horizon, [0, edge], [0.35, high], [1, mix(palette.near, palette.front, 0.55)]) +
      glitter,
    ground: wave(0.3, 16, 0.05) + (isAshore ? beach(stage, random) : wave(0.52, 24, 0.25)),
    front: isAshore ? '' : wave(0.86, 34, 0.6),
  }
}

/** Draws the sand in the light of the hour, wet along the foam of the last wave. */
function beach(stage: Stage, random: Random): string {
  const { palette, reading } = stage
  const dim = { day: 0.04, dawn: 0.2, grey: 0.3, dusk: 0.34, night: 0.66 }[palette.hour]
  const sand = mix(mix(parseHex('#f0dcb0'), palette.sky[2], 0.12), parseHex('#38293a'), dim)
  const dry = reading.season === 'winter' ? palette.near : sand
  const line = ridge(random, below(stage, 0.46), 46 * stage.scale)
  return (
    fillBelow(stage, (x) => line(x) - 9, mix(palette.paper, palette.sky[3], 0.2), 0.75) +
    fillBelow(stage, line, mix(dry, palette.near, 0.42)) +
    slope(stage, 'sand', (x) => line(x) + 34, dry, mix(dry, palette.front, 0.35))
  )
}

export function drawUnderwater(stage: Stage, random: Random): Layers {
  const { width, height, palette, light, scale } = stage
  const bed = (share: number) => ridge(random, height * share, 80 * scale)
  const [far, middle, near] = [bed(0.78), bed(0.88), bed(0.96)]
  /** Draws plants at the sides of the stage, as wide as `share` of it. */
  const kelp = (line: Line, share: number, shade: Colour) => {
    const count = Math.round(width / 34)
    const blades = many(count, (at) => {
      const x = ((at + random()) / count) * width
      const [foot, rise] = [line(x) + 20, 340 * scale * between(random, 0.35, 1)]
      const sway = between(random, -46, 46)
      if (Math.min(x, width - x) > share * width) return ''
      return svg`M${x - 7} ${foot}c${sway} ${-rise * 0.3} ${-sway} ${-rise * 0.7} ${sway} ${-rise}
        c${14 - sway} ${rise * 0.3} ${sway + 14} ${rise * 0.7} ${14 - sway} ${rise}Z`
    })
    return path(blades, shade)
  }
  const rays = many(7, (at) => {
    const x = width * ((at + random()) / 7)
    const [reach, lean] = [between(random, 60, 190), -light.side * between(random, 120, 260)]
    return svg`M${x} -20h${reach * 0.5}L${x + lean + reach} ${height}H${x + lean - reach * 0.4}Z`
  })
  const bubbles = many(34, () => {
    const [x, y, radius] = [random() * width, random() * height, between(random, 3, 15)]
    return circle(x, y, radius, palette.paper, between(random, 0.08, 0.28))
  })
  const [high, low] = [mix(palette.sky[2], palette.near, 0.25), mix(palette.sky[0], palette.near, 0.55)]
  return {
    back:
      floor(stage, 'deep', 0, [0, high], [0.45, low], [1, mix(palette.near, palette.front, 0.55)]) +
      fade('ray', 0, height, [0, palette.light, 0.26], [0.9, palette.light, 0]) +
      path(rays, 'url(#ray)') +
      slope(stage, 'bed-far', far, palette.far, mix(palette.far, palette.sky[3], 0.18)) +
      kelp(middle, 0.5, palette.middle) +
      slope(stage, 'bed-middle', middle, palette.middle, mix(palette.middle, palette.sky[3], 0.18)) +
      bubbles,
    ground: slope(stage, 'bed', near, palette.near, mix(palette.near, palette.front, 0.5)),
    front: kelp(near, 0.18, palette.front),
  }
}
