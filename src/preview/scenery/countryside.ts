// Draws mountains, hills, deserts and forests as lines of land, one behind the other.
import { type Colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { conifer, firm, grass, heightAt, jaggedRidge, misty, roundTree, smoothRidge } from './land-shapes.js'
import { below, type Land, type Point, path, polygon, type Stage, svg } from './stage.js'

export function mountains(stage: Stage, random: Random): Land {
  const { width, palette, scale, season } = stage
  const far = jaggedRidge(random, width, below(stage, 0.05), 330 * scale)
  const middle = jaggedRidge(random, width, below(stage, 0.2), 170 * scale)
  const near = smoothRidge(random, width, below(stage, 0.36), 60 * scale)
  const trees = row(
    stage,
    random,
    near,
    74 * scale,
    (x, foot, size) => conifer(x, foot, size, hex(mix(palette.near, palette.front, 0.45))),
    0.5,
  )
  const snow = season === 'summer' ? '' : caps(stage, far, 0.55, mix(palette.far, palette.paper, 0.75))
  return {
    far: misty(stage, 'far', far, palette.far) + snow,
    middle: misty(stage, 'middle', middle, palette.middle),
    ground: trees + firm(stage, 'ground', near, palette.near),
    front: fringe(stage, random, 46),
  }
}

export function hills(stage: Stage, random: Random): Land {
  const { width, palette, scale } = stage
  const far = smoothRidge(random, width, below(stage, 0.03), 130 * scale)
  const middle = smoothRidge(random, width, below(stage, 0.2), 110 * scale)
  const near = smoothRidge(random, width, below(stage, 0.42), 60 * scale)
  const wood = (line: readonly Point[], size: number, shade: Colour, density: number) =>
    row(stage, random, line, size * scale, (x, foot, each) => roundTree(stage, x, foot, each, shade), density)
  return {
    far: wood(far, 46, palette.far, 0.3) + misty(stage, 'far', far, palette.far),
    middle:
      wood(middle, 92, mix(palette.middle, palette.front, 0.18), 0.22) +
      misty(stage, 'middle', middle, palette.middle),
    ground: firm(stage, 'ground', near, palette.near) + flowers(stage, random),
    front: fringe(stage, random, 74),
  }
}

export function desert(stage: Stage, random: Random): Land {
  const { width, palette, scale } = stage
  const dune = (share: number, height: number, name: string, shade: Colour) => {
    const line = smoothRidge(random, width, below(stage, share), height * scale)
    return misty(stage, name, line, shade, 0.3) + shadowSide(stage, line, shade)
  }
  const far = jaggedRidge(random, width, below(stage, 0.02), 90 * scale)
  return {
    far:
      misty(stage, 'mesa', far, palette.far) + dune(0.14, 90, 'far', mix(palette.far, palette.middle, 0.5)),
    middle: dune(0.3, 130, 'middle', palette.middle),
    ground: dune(0.5, 90, 'ground', palette.near),
    front: '',
  }
}

/** Draws trees along a line of land, in groups with gaps. */
export function row(
  stage: Stage,
  random: Random,
  line: readonly Point[],
  size: number,
  draw: (x: number, foot: number, size: number) => string,
  density: number,
): string {
  let drawing = ''
  for (let x = -20; x < stage.width + 20; x += size * between(random, 0.28, 0.6)) {
    if (Math.sin(x / (size * 3.1) + size) + random() * 1.4 - 0.7 > 1 - density * 2) {
      drawing += draw(x, heightAt(line, x) + 4, size * between(random, 0.65, 1.3))
    }
  }
  return drawing
}

/** Draws the strip of grass or snow at the bottom of the frame. */
export function fringe(stage: Stage, random: Random, tall: number): string {
  const { width, height, palette, season, scale } = stage
  const line = smoothRidge(random, width, height * (height > width ? 0.93 : 0.94), 60)
  const shade = season === 'winter' ? mix(palette.near, palette.front, 0.3) : palette.front
  const blades =
    season === 'winter' ? '' : grass(stage, random, line, tall * Math.sqrt(scale) * 1.4, hex(shade))
  return (
    blades + polygon([...line, { x: width + 20, y: height + 40 }, { x: -20, y: height + 40 }], hex(shade))
  )
}

function caps(stage: Stage, line: readonly Point[], share: number, shade: Colour): string {
  const top = Math.min(...line.map(({ y }) => y))
  const foot = Math.max(...line.map(({ y }) => y))
  const snow = top + (foot - top) * (1 - share)
  const lower = line.map(({ x, y }, index) => ({
    x,
    y: Math.max(
      y,
      Math.min(snow + (index % 2 === 0 ? 26 : -12) + ((index * 37) % 23), y + (snow - y) * 0.92 + 12),
    ),
  }))
  const clipped = line.map(({ x, y }) => ({ x, y: Math.min(y, snow + 40) }))
  return polygon(
    [...clipped, ...lower.reverse().map(({ x, y }) => ({ x, y: Math.min(y, snow + 40) }))],
    hex(shade),
    stage.palette.hour === 'night' ? 0.6 : 0.85,
  )
}

/** Draws the shaded sides of the dunes. */
function shadowSide({ palette, light, scale }: Stage, line: readonly Point[], shade: Colour): string {
  const dark = hex(mix(shade, palette.front, 0.28))
  const crests = line.filter(
    (point, index) =>
      index > 0 && point.y < (line[index - 1]?.y ?? 0) && point.y <= (line[index + 1]?.y ?? 0),
  )
  return crests
    .map(({ x, y }) => {
      const reach = -light.side * 330 * scale
      return path(
        svg`M${x} ${y}` +
          svg`C${x + reach * 0.2} ${y + 50 * scale} ${x - reach * 0.12} ${y + 90 * scale} ${x + reach * 0.3} ${y + 190 * scale}` +
          svg`L${x + reach * 1.1} ${y + 150 * scale}Q${x + reach * 0.5} ${y + 36 * scale} ${x} ${y}Z`,
        dark,
        0.5,
      )
    })
    .join('')
}

function flowers(stage: Stage, random: Random): string {
  const { width, palette, season, scale } = stage
  if (season === 'winter' || season === 'autumn') return ''
  const shades = [palette.accent, palette.second, palette.paper].map((shade) =>
    hex(mix(shade, palette.near, palette.hour === 'night' ? 0.6 : 0.15)),
  )
  return Array.from({ length: 60 }, (_, index) => {
    const nearness = random()
    const y = below(stage, 0.5 + nearness * 0.5)
    return (
      svg`<circle cx="${random() * width}" cy="${y}" r="${(2 + nearness * 5) * Math.sqrt(scale)}"` +
      svg` fill="${String(shades[index % 3])}" fill-opacity=".85"/>`
    )
  }).join('')
}

/** Draws trees on two lines of hills, a clearing, and trunks on both sides of the frame. */
export function forest(stage: Stage, random: Random): Land {
  const { width, palette, scale, season } = stage
  const leafy = season === 'autumn' || season === 'spring' || (season === undefined && random() < 0.3)
  const [far = [], middle = [], near = []] = [0.02, 0.2, 0.4].map((share) =>
    smoothRidge(random, width, below(stage, share), 50 * scale),
  )
  const wood = (line: readonly Point[], size: number, shade: Colour): string => {
    let drawing = ''
    for (let x = -20; x < width + 20; x += size * between(random, 0.14, 0.3)) {
      const each = mix(shade, palette.front, random() * 0.22)
      const tall = size * between(random, 0.65, 1.25)
      const foot = heightAt(line, x) + 12
      drawing += leafy
        ? roundTree(stage, x, foot, tall, each)
        : snowy(stage, conifer(x, foot, tall, hex(each)), x, foot, tall)
    }
    return drawing
  }
  // In winter, the ground is white, but the trees are not.
  const tree = season === 'winter' ? mix(palette.middle, palette.front, 0.62) : palette.middle
  return {
    far: wood(far, 230 * scale, mix(palette.far, tree, 0.25)) + misty(stage, 'far', far, palette.far),
    middle: wood(middle, 330 * scale, tree) + misty(stage, 'middle', middle, palette.middle),
    ground: firm(stage, 'ground', near, palette.near),
    front: trunks(stage, random) + fringe(stage, random, 52),
  }
}

/** Draws snow on the lit side of a conifer. */
function snowy(
  { season, light, palette }: Stage,
  tree: string,
  x: number,
  foot: number,
  size: number,
): string {
  if (season !== 'winter') return tree
  let data = ''
  for (let tier = 0; tier < 4; tier++) {
    const bottom = foot - size * (0.1 + tier * 0.2)
    const half = size * (0.24 - tier * 0.05) * light.side
    data +=
      svg`M${x + half} ${bottom}Q${x + half * 0.3} ${bottom - size * 0.12} ${x} ${bottom - size * 0.3}` +
      svg`L${x + half * 0.15} ${bottom - size * 0.09}Z`
  }
  return tree + path(data, hex(mix(palette.near, palette.paper, 0.5)), 0.8)
}

function trunks(stage: Stage, random: Random): string {
  const { width, height, palette, scale, season } = stage
  const shade = hex(palette.front)
  return [-0.004, 1.004]
    .map((share, index) => {
      const x = width * share
      const half = between(random, 34, 52) * Math.sqrt(scale)
      const lean = (index === 0 ? -1 : 1) * between(random, 0, 14)
      const branch = height * between(random, 0.16, 0.42)
      const way = index === 0 ? 1 : -1
      const bough =
        svg`M${x} ${branch + 40}` +
        svg`Q${x + way * 90} ${branch + 10} ${x + way * between(random, 130, 230)} ${branch - 50}` +
        svg`Q${x + way * 80} ${branch - 16} ${x} ${branch}Z`
      const leaves = season === 'winter' ? '' : foliage(x, branch, way, shade, random)
      return (
        leaves +
        path(
          svg`M${x - half} ${height + 30}Q${x - half * 0.5} ${height * 0.6} ${x - half * 0.7 + lean} -20` +
            svg`H${x + half * 0.7 + lean}Q${x + half * 0.5} ${height * 0.6} ${x + half} ${height + 30}Z`,
          shade,
        ) +
        path(bough, shade)
      )
    })
    .join('')
}

/** Draws leaves along a branch. */
function foliage(x: number, branch: number, way: number, shade: string, random: Random): string {
  let data = ''
  for (let leaf = 0; leaf < 22; leaf++) {
    const out = between(random, 20, 235)
    const [at, up] = [x + way * out, branch - out * 0.2 + between(random, -55, 42)]
    const [long, wide] = [between(random, 22, 46) * way, between(random, 9, 17)]
    const fall = between(random, -6, 26)
    data +=
      svg`M${at} ${up}Q${at + long * 0.4} ${up - wide} ${at + long} ${up + fall}` +
      svg`Q${at + long * 0.5} ${up + wide} ${at} ${up}Z`
  }
  return path(data, shade)
}
