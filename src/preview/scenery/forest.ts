// Trees on two lines of hills, a clearing, and trunks at both sides of the frame.
import { type Colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { type Point, path, short } from './drawing.js'
import { fringe } from './highlands.js'
import { conifer, firm, misty, roundTree } from './land-shapes.js'
import { heightAt, smoothRidge } from './ridge-lines.js'
import { below, type Land, type Stage } from './stage.js'

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
  // Snow makes the ground white, but not the trees.
  const tree = season === 'winter' ? mix(palette.middle, palette.front, 0.62) : palette.middle
  return {
    far: wood(far, 230 * scale, mix(palette.far, tree, 0.25)) + misty(stage, 'far', far, palette.far),
    middle: wood(middle, 330 * scale, tree) + misty(stage, 'middle', middle, palette.middle),
    ground: firm(stage, 'ground', near, palette.near),
    front: trunks(stage, random) + fringe(stage, random, 52),
  }
}

/** Snow on the light's side of a conifer. */
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
    data += `M${short(x + half)} ${short(bottom)}Q${short(x + half * 0.3)} ${short(bottom - size * 0.12)} ${short(x)} ${short(bottom - size * 0.3)}L${short(x + half * 0.15)} ${short(bottom - size * 0.09)}Z`
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
      const bough = `M${short(x)} ${short(branch + 40)}Q${short(x + way * 90)} ${short(branch + 10)} ${short(x + way * between(random, 130, 230))} ${short(branch - 50)}Q${short(x + way * 80)} ${short(branch - 16)} ${short(x)} ${short(branch)}Z`
      const leaves = season === 'winter' ? '' : foliage(x, branch, way, shade, random)
      return (
        leaves +
        path(
          `M${short(x - half)} ${short(height + 30)}Q${short(x - half * 0.5)} ${short(height * 0.6)} ${short(x - half * 0.7 + lean)} -20H${short(x + half * 0.7 + lean)}Q${short(x + half * 0.5)} ${short(height * 0.6)} ${short(x + half)} ${short(height + 30)}Z`,
          shade,
        ) +
        path(bough, shade)
      )
    })
    .join('')
}

/** Leaves along a bough. */
function foliage(x: number, branch: number, way: number, shade: string, random: Random): string {
  let data = ''
  for (let leaf = 0; leaf < 22; leaf++) {
    const out = between(random, 20, 235)
    const [at, up] = [x + way * out, branch - out * 0.2 + between(random, -55, 42)]
    const [long, wide] = [between(random, 22, 46) * way, between(random, 9, 17)]
    const fall = between(random, -6, 26)
    data += `M${short(at)} ${short(up)}Q${short(at + long * 0.4)} ${short(up - wide)} ${short(at + long)} ${short(up + fall)}Q${short(at + long * 0.5)} ${short(up + wide)} ${short(at)} ${short(up)}Z`
  }
  return path(data, shade)
}
