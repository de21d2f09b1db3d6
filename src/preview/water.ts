// Draws the second ground: the sea with or without a beach, and the sea below its surface.
import { mix } from './palette.js'
import { between } from './random.js'
import {
  below,
  fade,
  fillBelow,
  floor,
  type Layers,
  type Line,
  many,
  ridge,
  type Stage,
  slope,
  svg,
} from './stage.js'

export function drawSea(stage: Stage): Layers {
  const { width, height, horizon, palette, scale, light, random } = stage
  const wave = (share: number, tall: number, dark: number) =>
    fillBelow(
      stage,
      ridge(random, below(stage, share), tall * scale),
      mix(palette.near, palette.front, dark),
      0.42,
    )
  const glitter = many(130, (at) => {
    const [near, isRoad] = [(at / 130) ** 1.35, random() < 0.72]
    const x = isRoad ? light.x + between(random, -1, 1) * (26 + near * 190) : random() * width
    return svg`<rect x="${x - 30}" y="${horizon + 5 + near * (height - horizon) * 0.9}" width="${(8 + near * 90) * between(random, 0.5, 1.4)}"
      height="${1.6 + near * 5}" rx="3" fill="${palette.light}" fill-opacity="${isRoad ? 0.5 : 0.14}"/>`
  })
  const [edge, high, deep] = [
    mix(palette.sky[3], palette.near, 0.3),
    mix(palette.sky[2], palette.near, 0.72),
    mix(palette.near, palette.front, 0.55),
  ]
  const shore = slope(
    stage,
    'shore',
    ridge(random, horizon + 4, 60 * scale),
    palette.far,
    mix(palette.far, palette.sky[3], 0.2),
  )
  const water = floor(stage, 'water', horizon, `0 ${edge}, .35 ${high}, 1 ${deep}`)
  const ground = wave(0.3, 16, 0.05)
  return stage.place === 'beach'
    ? [shore + water + glitter, ground + beach(stage)]
    : [shore + water + glitter, ground + wave(0.52, 24, 0.25), wave(0.86, 34, 0.6)]
}

/** Draws the sand in the light of the hour, wet along the foam of the last wave. */
function beach(stage: Stage): string {
  const { palette, reading, scale, random } = stage
  const dim = { day: 0.04, dawn: 0.2, grey: 0.3, dusk: 0.34, night: 0.66 }[palette.hour]
  const dry =
    reading.season === 'winter' ? palette.near : mix(mix('#f0dcb0', palette.sky[2], 0.12), '#38293a', dim)
  const line = ridge(random, below(stage, 0.46), 46 * scale)
  return (
    fillBelow(stage, (x) => line(x) - 9, palette.paper, 0.75) +
    fillBelow(stage, line, mix(dry, palette.near, 0.42)) +
    slope(stage, 'sand', (x) => line(x) + 34, dry, mix(dry, palette.front, 0.35))
  )
}

export function drawUnderwater(stage: Stage): Layers {
  const { width, height, palette, light, scale, random } = stage
  /** Draws a line of the bed, with plants behind it. Those in front grow only at the sides. */
  const bed = (name: string, share: number, shade: string, sides: number) => {
    const line: Line = ridge(random, height * share, 80 * scale)
    const kelp = many(width / 34, () => {
      const x = random() * width
      const [foot, rise, sway] = [
        line(x) + 20,
        340 * scale * between(random, 0.35, 1),
        between(random, -46, 46),
      ]
      if (Math.min(x, width - x) > sides * width) return ''
      return svg`M${x - 7} ${foot}c${sway} ${-rise * 0.3} ${-sway} ${-rise * 0.7} ${sway} ${-rise}
        c${14 - sway} ${rise * 0.3} ${sway + 14} ${rise * 0.7} ${14 - sway} ${rise}Z`
    })
    return `<path d="${kelp}" fill="${shade}"/>${slope(stage, name, line, shade, mix(shade, palette.front, 0.4))}`
  }
  const rays = many(7, (at) => {
    const [x, reach, lean] = [
      width * ((at + random()) / 7),
      between(random, 60, 190),
      -light.side * between(random, 120, 260),
    ]
    return svg`M${x} -20h${reach * 0.5}L${x + lean + reach} ${height}H${x + lean - reach * 0.4}Z`
  })
  const bubbles = many(
    34,
    () =>
      svg`<circle cx="${random() * width}" cy="${random() * height}" r="${between(random, 3, 15)}" fill="${palette.paper}" fill-opacity=".2"/>`,
  )
  const [high, low] = [mix(palette.sky[2], palette.near, 0.25), mix(palette.sky[0], palette.near, 0.55)]
  const deep = floor(stage, 'deep', -20, `0 ${high}, .45 ${low}, 1 ${mix(palette.near, palette.front, 0.55)}`)
  const lit = `${fade('ray', `0 ${palette.light} .26, .9 ${palette.light} 0`)}<path d="${rays}" fill="url(#ray)"/>`
  const back =
    deep + lit + bed('bed-far', 0.8, palette.far, 0) + bed('bed', 0.88, palette.middle, 0.5) + bubbles
  return [back, bed('bed-near', 0.96, palette.near, 0), bed('bed-front', 1.06, palette.front, 0.18)]
}
