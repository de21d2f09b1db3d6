// A table by a window, and a studio with a stand.
import { colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { box, circle, fade, ground, path, short } from './drawing.js'
import { level } from './sea.js'
import type { Land, Stage } from './stage.js'

export const TABLE_TOP = 0.6
export const STAND_TOP = 0.74

export function table(stage: Stage, random: Random): Land {
  const { width, height, palette } = stage
  const top = height * TABLE_TOP
  const wall = mix(palette.sky[2], palette.near, palette.hour === 'night' ? 0.15 : 0.22)
  const dim = palette.hour === 'night' ? mix(wall, palette.ink, 0.35) : wall
  const room =
    fade('wall', 0, top, [
      [0, hex(mix(dim, palette.front, 0.12))],
      [1, hex(dim)],
    ]) + box(-20, -20, width + 40, height + 40, 'url(#wall)')
  const plank = palette.near
  const board =
    fade('board', top, height, [
      [0, hex(mix(plank, palette.light, 0.32))],
      [0.25, hex(plank)],
      [1, hex(mix(plank, palette.front, 0.45))],
    ]) +
    ground(level(stage, top), height + 40, 'url(#board)') +
    box(-20, top, width + 40, 4, hex(mix(plank, palette.light, 0.6)))
  const grain = Array.from({ length: 16 }, () => {
    const y = top + 14 + random() ** 1.4 * (height - top)
    return `<rect x="${short(random() * width - 200)}" y="${short(y)}" width="${short(between(random, 160, 620))}" height="2.4" rx="1" fill="${hex(palette.front)}" fill-opacity=".13"/>`
  }).join('')
  const shelf = bokeh(stage, random)
  return {
    far: room + view(stage, top) + shelf,
    middle: patch(stage),
    ground: board + grain,
    front: '',
  }
}

/** The window that the light comes from, with the sky in it. */
function view({ width, palette, light }: Stage, top: number): string {
  const across = Math.min(430, width * 0.36)
  const x = light.side < 0 ? width * 0.06 : width * 0.94 - across
  const y = top * 0.1
  const tall = top * 0.72
  const frame = hex(mix(palette.paper, palette.near, 0.12))
  const glass = fade('pane', y, y + tall, [
    [0, hex(palette.sky[1])],
    [1, hex(palette.sky[3])],
  ])
  const hill = path(
    `M${short(x)} ${short(y + tall * 0.78)}Q${short(x + across * 0.3)} ${short(y + tall * 0.55)} ${short(x + across * 0.6)} ${short(y + tall * 0.74)}T${short(x + across)} ${short(y + tall * 0.66)}V${short(y + tall)}H${short(x)}Z`,
    hex(mix(palette.middle, palette.sky[3], 0.4)),
  )
  return (
    glass +
    box(x - 14, y - 14, across + 28, tall + 28, frame) +
    box(x, y, across, tall, 'url(#pane)') +
    hill +
    circle(x + across * 0.62, y + tall * 0.3, 34, hex(palette.light), 0.9) +
    box(x + across / 2 - 5, y, 10, tall, frame) +
    box(x, y + tall * 0.45, across, 10, frame) +
    box(x - 30, y + tall + 14, across + 60, 18, frame)
  )
}

/** Light through the window, lying on the wall. */
function patch({ width, height, palette, light }: Stage): string {
  const x = light.side < 0 ? width * 0.55 : width * 0.16
  const lean = -light.side * 90
  const data = [0, 1].map((pane) => {
    const left = x + pane * 130
    return `M${short(left)} ${short(height * 0.12)}h110l${short(lean)} ${short(height * 0.36)}h-110Z`
  })
  return path(data.join(''), hex(palette.light), palette.hour === 'night' ? 0.07 : 0.2)
}

/** Lamps far behind, out of focus. */
function bokeh({ width, height, palette, light }: Stage, random: Random): string {
  if (palette.hour === 'day' || palette.hour === 'dawn') return ''
  return Array.from({ length: 14 }, () => {
    const x = light.side < 0 ? between(random, 0.5, 1) : between(random, 0, 0.5)
    return circle(
      x * width,
      between(random, 0.05, 0.5) * height,
      between(random, 14, 44),
      hex(mix(colour(0.9, 0.12, 75), palette.accent, random() * 0.4)),
      Math.round(between(random, 8, 26)) / 100,
    )
  }).join('')
}

export function studio(stage: Stage, random: Random): Land {
  const { width, height, palette, light, scale } = stage
  const wall = mix(palette.sky[2], palette.accent, 0.28)
  const sweep =
    `<radialGradient id="sweep" gradientUnits="userSpaceOnUse" cx="${short(width / 2 + light.side * width * 0.16)}" cy="${short(height * 0.36)}" r="${short(Math.max(width, height) * 0.72)}">` +
    `<stop offset="0" stop-color="${hex(mix(wall, palette.light, 0.55))}"/><stop offset=".5" stop-color="${hex(wall)}"/>` +
    `<stop offset="1" stop-color="${hex(mix(wall, palette.front, 0.55))}"/></radialGradient>` +
    box(-20, -20, width + 40, height + 40, 'url(#sweep)')
  const top = height * STAND_TOP
  const across = Math.min(width * 0.36, 330 * Math.sqrt(scale))
  const x = width / 2
  const side = hex(mix(wall, palette.front, 0.34))
  const lid = hex(mix(wall, palette.light, 0.42))
  const depth = across * 0.2
  const shade = fade('floor', height * 0.68, height, [
    [0, hex(mix(wall, palette.light, 0.12))],
    [1, hex(mix(wall, palette.front, 0.5))],
  ])
  const arch = between(random, 0.8, 1.1) * across
  const disc =
    random() < 0.5
      ? circle(
          x - light.side * across * 0.5,
          height * 0.42,
          across * 0.95,
          hex(mix(wall, palette.second, 0.4)),
          0.8,
        )
      : path(
          `M${short(x - arch)} ${short(height * 0.7)}V${short(height * 0.42)}a${short(arch)} ${short(arch)} 0 0 1 ${short(arch * 2)} 0V${short(height * 0.7)}Z`,
          hex(mix(wall, palette.second, 0.32)),
          0.8,
        )
  return {
    far: sweep + disc,
    middle: shade + ground(level(stage, height * 0.7), height + 40, 'url(#floor)'),
    ground: !stage.isStill
      ? ''
      : `<ellipse cx="${short(x - light.side * across * 0.35)}" cy="${short(top + height * 0.2)}" rx="${short(across * 1.35)}" ry="${short(depth * 1.2)}" fill="${hex(palette.front)}" fill-opacity=".22"/>` +
        path(
          `M${short(x - across)} ${short(top)}V${short(top + height * 0.16)}A${short(across)} ${short(depth)} 0 0 0 ${short(x + across)} ${short(top + height * 0.16)}V${short(top)}Z`,
          side,
        ) +
        `<ellipse cx="${short(x)}" cy="${short(top)}" rx="${short(across)}" ry="${short(depth)}" fill="${lid}"/>`,
    front: '',
  }
}
