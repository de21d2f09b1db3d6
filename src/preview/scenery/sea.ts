// Draws the sea, above and below the surface.
import { type Colour, colour, hex, mix, parseHex } from '../colour.js'
import { between, type Random } from '../random.js'
import { firm, heightAt, misty, smoothRidge } from './land-shapes.js'
import {
  below,
  circle,
  fade,
  ground,
  type Land,
  type Point,
  path,
  polygon,
  type Stage,
  svg,
} from './stage.js'

export function sea(stage: Stage, random: Random): Land {
  const { width, height, horizon, palette, scale } = stage
  const shore = smoothRidge(random, width, horizon + 4, 60 * scale)
  const flat = level(stage, horizon)
  const water =
    fade('water', horizon, height, [
      [0, hex(mix(palette.sky[3], palette.near, 0.3))],
      [0.35, hex(mix(palette.sky[2], palette.near, 0.72))],
      [1, hex(mix(palette.near, palette.front, 0.55))],
    ]) + ground(flat, height + 40, 'url(#water)')
  const wave = (share: number, tall: number, dark: number) =>
    ground(
      smoothRidge(random, width, below(stage, share), tall * scale),
      height + 40,
      hex(mix(palette.near, palette.front, dark)),
    ).replace('/>', ` fill-opacity="0.42"/>`)
  return {
    far: misty(stage, 'far', shore, palette.far, 0.2),
    middle: water + glitter(stage, random),
    ground: wave(0.3, 16, 0.05) + (shoreOf(stage, random) || wave(0.52, 24, 0.25)),
    front: stage.isAshore ? '' : `${wave(0.8, 34, 0.6)}${wave(0.93, 40, 0.85)}`,
  }
}

function shoreOf(stage: Stage, random: Random): string {
  if (!stage.isAshore) return ''
  return stage.hasCliff ? cliff(stage, random) : beach(stage, random)
}

/** Returns the colour of sand, rock or grass in the light of the hour. */
function earth({ palette }: Stage, text: string): Colour {
  const dim = { day: 0.04, dawn: 0.2, grey: 0.3, dusk: 0.34, night: 0.66 }[palette.hour]
  const shade = mix(mix(parseHex(text), palette.ambient, 0.12), parseHex('#38293a'), dim)
  return palette.isMonochrome ? colour(shade.lightness, 0, 0) : shade
}

/** Draws a cliff on the side away from the light: grass at the top, and a rock face down to the water. */
function cliff(stage: Stage, random: Random): string {
  const { width, height, palette, light, scale } = stage
  // Points are for the left side. Mirror them when the light is on the left.
  const onSide = (points: readonly Point[]) =>
    light.side > 0 ? points : points.map(({ x, y }) => ({ x: width - x, y }))
  const [top, bottom, edge] = [below(stage, 0.4), height + 40, width * 0.56]
  const crest = smoothRidge(random, width, top, 50 * scale).filter(({ x }) => x < edge)
  const face = Array.from({ length: 9 }, (_, step) => ({
    x: edge + step * width * 0.012 + between(random, -16, 16),
    y: top + ((bottom - top) * (step + 0.3)) / 8.3,
  }))
  const cracks = face.slice(1, -1).map(({ x, y }) => {
    const long = between(random, 0.05, 0.16) * width
    return polygon(
      onSide([
        { x, y },
        { x: x - long, y: y - 16 },
        { x: x - long * 0.5, y: y + 7 },
      ]),
      hex(palette.front),
      0.3,
    )
  })
  const [rock, turf] = [
    earth(stage, '#9a8f84'),
    earth(stage, stage.season === 'winter' ? '#f2f4f8' : '#7f9a52'),
  ]
  const foot = { x: -20, y: bottom }
  return (
    fade('rock', top, bottom, [
      [0, hex(mix(rock, palette.light, 0.25))],
      [1, hex(mix(rock, palette.front, 0.35))],
    ]) +
    polygon(onSide([...crest, ...face, foot]), 'url(#rock)') +
    cracks.join('') +
    fade('turf', top, bottom, [
      [0, hex(mix(turf, palette.light, 0.2))],
      [0.4, hex(turf)],
      [1, hex(mix(turf, palette.front, 0.5))],
    ]) +
    polygon(onSide([...crest, { x: edge - width * 0.1, y: bottom }, foot]), 'url(#turf)')
  )
}

/** Draws the sand, which is wet along the foam of the last wave. */
function beach(stage: Stage, random: Random): string {
  const { width, height, palette, scale } = stage
  const dry = earth(stage, '#f0dcb0')
  const line = smoothRidge(random, width, below(stage, 0.46), 46 * scale)
  const lower = (down: number) => line.map(({ x, y }) => ({ x, y: y + down }))
  const foam = hex(mix(palette.paper, palette.sky[3], 0.2))
  const shells = Array.from({ length: 60 }, () => {
    const x = random() * width
    const y = heightAt(line, x) + 60 + random() * (height - below(stage, 0.5))
    return circle(x, y, between(random, 1.2, 3.4), hex(mix(dry, palette.front, 0.4)), 0.35)
  })
  return (
    ground(lower(-9), height + 40, foam).replace('/>', ' fill-opacity=".75"/>') +
    ground(line, height + 40, hex(mix(dry, palette.near, 0.42))) +
    firm(stage, 'sand', lower(34), dry) +
    shells.join('')
  )
}

/** Draws the reflection of the light on the water. */
function glitter({ width, height, horizon, palette, light }: Stage, random: Random): string {
  const shade = hex(palette.light)
  return Array.from({ length: 130 }, (_, index) => {
    const nearness = (index / 130) ** 1.35
    const y = horizon + 5 + nearness * (height - horizon) * 0.9
    const road = random() < 0.72
    const spread = 26 + nearness * 190
    const x = road ? light.x + between(random, -spread, spread) : random() * width
    const length = (8 + nearness * 90) * between(random, 0.5, 1.4)
    return (
      svg`<rect x="${x - length / 2}" y="${y}" width="${length}" height="${1.6 + nearness * 5}" ` +
      `rx="3" fill="${shade}" fill-opacity="${road ? 0.5 : 0.14}"/>`
    )
  }).join('')
}

export function underwater(stage: Stage, random: Random): Land {
  const { width, height, palette, scale } = stage
  const far = smoothRidge(random, width, height * 0.74, 150 * scale)
  const middle = smoothRidge(random, width, height * 0.84, 120 * scale)
  const near = smoothRidge(random, width, height * 0.92, 60)
  const rays = Array.from({ length: 7 }, (_, index) => {
    const x = width * ((index + random()) / 7)
    const reach = between(random, 60, 190)
    const lean = -stage.light.side * between(random, 120, 260)
    return path(
      svg`M${x} -20h${reach * 0.5}L${x + lean + reach} ${height}H${x + lean - reach * 0.4}Z`,
      'url(#ray)',
    )
  }).join('')
  const ray = fade('rays', 0, height, [
    [0, hex(palette.light)],
    [1, hex(palette.light)],
  ])
    .replace('id="rays"', 'id="ray"')
    .replace('offset="0" ', 'offset="0" stop-opacity=".26" ')
    .replace('offset="1" ', 'offset="0.9" stop-opacity="0" ')
  // Bright at the surface, dark below.
  const deep =
    fade('deep', 0, height, [
      [0, hex(mix(palette.sky[2], palette.near, 0.25))],
      [0.45, hex(mix(palette.sky[0], palette.near, 0.55))],
      [1, hex(mix(palette.near, palette.front, 0.55))],
    ]) + svg`<rect x="-20" y="-20" width="${width + 40}" height="${height + 40}" fill="url(#deep)"/>`
  const bubbles = Array.from({ length: 34 }, () => {
    const size = between(random, 3, 15) * Math.sqrt(scale)
    return circle(
      random() * width,
      random() * height,
      size,
      hex(palette.paper),
      Math.round(between(random, 8, 28)) / 100,
    )
  }).join('')
  return {
    far: deep + ray + rays + misty(stage, 'far', far, palette.far, 0.2),
    middle:
      kelp(stage, random, middle, 300, hex(palette.middle)) +
      misty(stage, 'middle', middle, palette.middle, 0.15) +
      bubbles,
    ground: firm(stage, 'ground', near, palette.near),
    front: kelp(stage, random, near, 400, hex(palette.front), true),
  }
}

/** Draws seaweed. `sides` keeps the middle free for the actors. */
function kelp(
  { width, scale }: Stage,
  random: Random,
  line: readonly Point[],
  tall: number,
  shade: string,
  sides = false,
): string {
  let data = ''
  for (let x = -10; x < width + 10; x += between(random, 16, 46) * scale) {
    const share = x / width
    if (sides && share > 0.2 && share < 0.8) continue
    if (!sides && random() < 0.45) continue
    const foot = (line[Math.round(share * 120)]?.y ?? 900) + 20
    const top = foot - tall * scale * between(random, 0.35, 1)
    const sway = between(random, -46, 46)
    const half = 7 * scale
    const middle = (foot + top) / 2
    data +=
      svg`M${x - half} ${foot}C${x + sway} ${middle + 40} ${x - sway} ${middle - 40} ${x + sway} ${top}` +
      svg`C${x - sway + half * 2} ${middle - 40} ${x + sway + half * 2} ${middle + 40} ${x + half} ${foot}Z`
  }
  return path(data, shade)
}

export function level({ width }: Stage, y: number): Point[] {
  return [
    { x: -20, y },
    { x: width + 20, y },
  ]
}
