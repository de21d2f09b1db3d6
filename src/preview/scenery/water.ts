// Draws the second ground: the sea with or without a beach, and the sea below its surface.
import { hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { fillBelow, type Ground, ridge, slope } from './land.js'
import { below, box, circle, fade, fill, path, type Stage, svg } from './stage.js'

export function drawWater(stage: Stage, random: Random): Ground {
  const { width, height, horizon, palette, scale, isAshore, light } = stage
  if (stage.place === 'underwater') return underwater(stage, random)
  const wave = (share: number, tall: number, dark: number) =>
    fillBelow(
      stage,
      ridge(random, below(stage, share), tall * scale),
      hex(mix(palette.near, palette.front, dark)),
      0.42,
    )
  const [shallow, deep] = [
    mix(palette.sky[3], palette.near, 0.3),
    mix(palette.near, palette.front, 0.55),
  ].map(hex)
  const glitter = Array.from({ length: 130 }, (_, at) => {
    const [near, isRoad] = [(at / 130) ** 1.35, random() < 0.72]
    const x = isRoad ? light.x + between(random, -1, 1) * (26 + near * 190) : random() * width
    const [y, length] = [
      horizon + 5 + near * (height - horizon) * 0.9,
      (8 + near * 90) * between(random, 0.5, 1.4),
    ]
    return box([x - length / 2, y, length, 1.6 + near * 5], hex(palette.light), 3, isRoad ? 0.5 : 0.14)
  })
  return {
    back:
      slope(stage, 'shore', ridge(random, horizon + 4, 60 * scale), palette.far, palette.sky[3], 0.2) +
      fade(
        'water',
        horizon,
        height,
        [0, shallow ?? ''],
        [0.35, hex(mix(palette.sky[2], palette.near, 0.72))],
        [1, deep ?? ''],
      ) +
      fillBelow(stage, () => horizon, 'url(#water)') +
      glitter.join(''),
    ground: wave(0.3, 16, 0.05) + (isAshore ? beach(stage, random) : wave(0.52, 24, 0.25)),
    front: isAshore ? '' : wave(0.8, 34, 0.6) + wave(0.93, 40, 0.85),
  }
}

/** Draws the sand in the light of the hour, wet along the foam of the last wave. */
function beach(stage: Stage, random: Random): string {
  const { palette, reading } = stage
  const dim = { day: 0.04, dawn: 0.2, grey: 0.3, dusk: 0.34, night: 0.66 }[palette.hour]
  const sand = mix(mix(parseHex('#f0dcb0'), palette.ambient, 0.12), parseHex('#38293a'), dim)
  const dry =
    reading.season === 'winter' ? palette.near : palette.isMonochrome ? { ...sand, chroma: 0 } : sand
  const line = ridge(random, below(stage, 0.46), 46 * stage.scale)
  return (
    fillBelow(stage, (x) => line(x) - 9, hex(mix(palette.paper, palette.sky[3], 0.2)), 0.75) +
    fillBelow(stage, line, hex(mix(dry, palette.near, 0.42))) +
    slope(stage, 'sand', (x) => line(x) + 34, dry, palette.front, 0.35)
  )
}

function underwater(stage: Stage, random: Random): Ground {
  const { width, height, palette, light, scale } = stage
  const beds = [palette.far, palette.middle, palette.near].map((shade, at) => {
    const line = ridge(random, height * (0.76 + at * 0.085), (90 - at * 20) * scale)
    let kelp = ''
    for (let x = -10; x < width + 10 && at > 0; x += between(random, 20, 60) * scale) {
      if (at === 2 && Math.min(x, width - x) > 0.18 * width) continue
      const [foot, rise, sway] = [
        line(x) + 20,
        340 * scale * between(random, 0.35, 1),
        between(random, -46, 46),
      ]
      kelp += svg`M${x - 7} ${foot}c${sway} ${-rise * 0.3} ${-sway} ${-rise * 0.7} ${sway} ${-rise}
        c${14 - sway} ${rise * 0.3} ${sway + 14} ${rise * 0.7} ${14 - sway} ${rise}Z`
    }
    const bed = slope(
      stage,
      `bed-${at}`,
      line,
      shade,
      at < 2 ? palette.sky[3] : palette.front,
      at < 2 ? 0.18 : 0.5,
    )
    return { bed, kelp: path(kelp, hex(at < 2 ? palette.middle : palette.front)) }
  })
  const rays = Array.from({ length: 7 }, (_, at) => {
    const [x, reach, lean] = [
      width * ((at + random()) / 7),
      between(random, 60, 190),
      -light.side * between(random, 120, 260),
    ]
    return svg`M${x} -20h${reach * 0.5}L${x + lean + reach} ${height}H${x + lean - reach * 0.4}Z`
  })
  const bubbles = Array.from({ length: 34 }, () =>
    circle(
      random() * width,
      random() * height,
      between(random, 3, 15),
      hex(palette.paper),
      between(random, 0.08, 0.28),
    ),
  )
  const shades = [
    mix(palette.sky[2], palette.near, 0.25),
    mix(palette.sky[0], palette.near, 0.55),
    mix(palette.near, palette.front, 0.55),
  ]
  return {
    back:
      fade('deep', 0, height, ...shades.map((shade, at) => [[0, 0.45, 1][at] ?? 1, hex(shade)] as const)) +
      fill(stage, 'url(#deep)') +
      fade('ray', 0, height, [0, hex(palette.light), 0.26], [0.9, hex(palette.light), 0]) +
      path(rays.join(''), 'url(#ray)') +
      `${beds[0]?.bed}${beds[1]?.kelp}${beds[1]?.bed}${bubbles.join('')}`,
    ground: beds[2]?.bed ?? '',
    front: beds[2]?.kelp ?? '',
  }
}
