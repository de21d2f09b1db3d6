// Draws the second ground: the sea with or without a beach, and the sea below its surface.
import { hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { fillBelow, type Layers, ridge, slope } from './land.js'
import { below, box, circle, fade, fill, many, path, type Stage, svg } from './stage.js'

export function drawSea(stage: Stage, random: Random): Layers {
  const { width, height, horizon, palette, scale, isAshore, light } = stage
  const wave = (share: number, tall: number, dark: number) => {
    const shade = hex(mix(palette.near, palette.front, dark))
    return fillBelow(stage, ridge(random, below(stage, share), tall * scale), shade, 0.42)
  }
  const shades = [
    mix(palette.sky[3], palette.near, 0.3),
    mix(palette.sky[2], palette.near, 0.72),
    mix(palette.near, palette.front, 0.55),
  ].map(hex)
  const glitter = many(130, (at) => {
    const [near, isRoad] = [(at / 130) ** 1.35, random() < 0.72]
    const x = isRoad ? light.x + between(random, -1, 1) * (26 + near * 190) : random() * width
    const length = (8 + near * 90) * between(random, 0.5, 1.4)
    const y = horizon + 5 + near * (height - horizon) * 0.9
    return box([x - length / 2, y, length, 1.6 + near * 5], hex(palette.light), 3, isRoad ? 0.5 : 0.14)
  })
  return {
    back:
      slope(
        stage,
        'shore',
        ridge(random, horizon + 4, 60 * scale),
        palette.far,
        mix(palette.far, palette.sky[3], 0.2),
      ) +
      fade('water', horizon, height, [0, shades[0] ?? ''], [0.35, shades[1] ?? ''], [1, shades[2] ?? '']) +
      fillBelow(stage, () => horizon, 'url(#water)') +
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
    fillBelow(stage, (x) => line(x) - 9, hex(mix(palette.paper, palette.sky[3], 0.2)), 0.75) +
    fillBelow(stage, line, hex(mix(dry, palette.near, 0.42))) +
    slope(stage, 'sand', (x) => line(x) + 34, dry, mix(dry, palette.front, 0.35))
  )
}

export function drawUnderwater(stage: Stage, random: Random): Layers {
  const { width, height, palette, light, scale } = stage
  const kelp = (line: (x: number) => number, count: number, isSeen: (x: number) => boolean) =>
    many(count, (at) => {
      const x = ((at + random()) / count) * width
      const [foot, rise] = [line(x) + 20, 340 * scale * between(random, 0.35, 1)]
      const sway = between(random, -46, 46)
      return isSeen(x)
        ? svg`M${x - 7} ${foot}c${sway} ${-rise * 0.3} ${-sway} ${-rise * 0.7} ${sway} ${-rise}
            c${14 - sway} ${rise * 0.3} ${sway + 14} ${rise * 0.7} ${14 - sway} ${rise}Z`
        : ''
    })
  const [far, middle, near] = [0.78, 0.88, 0.96].map((share) =>
    ridge(random, height * share, 80 * scale),
  ) as [(x: number) => number, (x: number) => number, (x: number) => number]
  const isAtSide = (x: number) => Math.min(x, width - x) < 0.18 * width
  const rays = many(7, (at) => {
    const x = width * ((at + random()) / 7)
    const [reach, lean] = [between(random, 60, 190), -light.side * between(random, 120, 260)]
    return svg`M${x} -20h${reach * 0.5}L${x + lean + reach} ${height}H${x + lean - reach * 0.4}Z`
  })
  const bubbles = many(34, () => {
    const [x, y, radius] = [random() * width, random() * height, between(random, 3, 15)]
    return circle(x, y, radius, hex(palette.paper), between(random, 0.08, 0.28))
  })
  const deep = [mix(palette.sky[2], palette.near, 0.25), mix(palette.sky[0], palette.near, 0.55)].map(hex)
  const dark = hex(mix(palette.near, palette.front, 0.55))
  return {
    back:
      fade('deep', 0, height, [0, deep[0] ?? ''], [0.45, deep[1] ?? ''], [1, dark]) +
      fill(stage, 'url(#deep)') +
      fade('ray', 0, height, [0, hex(palette.light), 0.26], [0.9, hex(palette.light), 0]) +
      path(rays, 'url(#ray)') +
      slope(stage, 'bed-far', far, palette.far, mix(palette.far, palette.sky[3], 0.18)) +
      path(
        kelp(middle, width / 34, () => true),
        hex(palette.middle),
      ) +
      slope(stage, 'bed-middle', middle, palette.middle, mix(palette.middle, palette.sky[3], 0.18)) +
      bubbles,
    ground: slope(stage, 'bed', near, palette.near, mix(palette.near, palette.front, 0.5)),
    front: path(kelp(near, width / 34, isAtSide), hex(palette.front)),
  }
}
