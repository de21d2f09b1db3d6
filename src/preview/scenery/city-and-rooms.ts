// Draws built places: a street with rows of houses, whose windows are lit after dark and reflected in the rain; a table
// by a window; and a studio with a stand.
import { type Colour, colour, hex, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { level } from './sea.js'
import { below, box, circle, fade, ground, type Land, path, type Stage, svg } from './stage.js'

export function city(stage: Stage, random: Random): Land {
  const { palette, height, scale } = stage
  const street = below(stage, 0.34)
  const dark = palette.hour === 'night' || palette.hour === 'dusk'
  const asphalt = mix(palette.near, palette.front, dark ? 0.5 : 0.15)
  const floor =
    fade('street', street, height, [
      [0, hex(mix(asphalt, palette.sky[3], 0.3))],
      [0.3, hex(asphalt)],
      [1, hex(mix(asphalt, palette.front, 0.7))],
    ]) + ground(level(stage, street), height + 40, 'url(#street)')
  return {
    far: houses(stage, random, below(stage, 0.1), [170, 430], palette.far, 0.1, 46),
    middle: houses(stage, random, street + 4, [170, 360], palette.middle, dark ? 0.42 : 0.3, 84),
    ground:
      floor +
      lanes(stage, street) +
      (dark || stage.weather === 'rain' ? gleams(stage, random, street) : '') +
      lamps(stage, street),
    front:
      box(-20, height * 0.955, stage.width + 40, height * 0.05 + 40, hex(palette.front)) +
      box(-20, height * 0.95, stage.width + 40, 5 * scale, hex(mix(palette.front, palette.light, 0.25))),
  }
}

function houses(
  stage: Stage,
  random: Random,
  foot: number,
  tall: [number, number],
  shade: Colour,
  lit: number,
  breadth: number,
): string {
  const { palette, light, scale, width: across } = stage
  const night = palette.hour === 'night' || palette.hour === 'dusk'
  let drawing = ''
  for (let x = -20; x < across + 20; ) {
    const width = between(random, breadth, breadth * 1.9) * Math.sqrt(scale)
    // Houses in front of the light are lower, so that the street opens towards the light.
    const gap = Math.min(1, Math.abs(x + width / 2 - light.x) / 360)
    const top = foot - between(random, tall[0], tall[1]) * scale * (0.5 + 0.5 * gap)
    const houseColour = mix(shade, random() < 0.3 ? palette.accent : palette.front, random() * 0.16)
    drawing += box(x, top, width + 1, stage.height + 40 - top, hex(houseColour))
    const edge = light.x > x ? x + width - 5 : x
    drawing +=
      svg`<rect x="${edge}" y="${top}" width="5" height="${foot - top}" fill="${hex(palette.light)}"` +
      ' fill-opacity=".25"/>'
    drawing += roof(random, x, top, width, houseColour)
    const pane = breadth * 0.14
    for (let row = top + pane * 1.4; row < foot - pane * 2; row += pane * 2.1) {
      for (let column = x + pane; column < x + width - pane * 1.4; column += pane * 1.8) {
        const on = random() < lit
        if (!on && random() < 0.45) continue
        const warm = random() < 0.75 ? colour(0.88, 0.13, 78) : colour(0.85, 0.07, 220)
        drawing += box(
          column,
          row,
          pane * 0.95,
          pane * 1.25,
          hex(on && night ? warm : mix(houseColour, on ? palette.light : palette.front, 0.28)),
        )
      }
    }
    x += width
  }
  return drawing
}

function roof(random: Random, x: number, top: number, width: number, shade: Colour): string {
  const kind = random()
  if (kind < 0.2)
    return path(
      svg`M${x} ${top + 1}L${x + width / 2} ${top - width * 0.4}L${x + width} ${top + 1}Z`,
      hex(shade),
    )
  if (kind < 0.4) return box(x + width * 0.2, top - 16, width * 0.6, 18, hex(shade))
  if (kind < 0.55) return box(x + width * 0.48, top - 46, width * 0.05, 48, hex(shade))
  return ''
}

function lanes({ width, height, palette, light }: Stage, street: number): string {
  const shade = hex(mix(palette.near, palette.paper, 0.5))
  const middle = width - light.x
  return Array.from({ length: 6 }, (_, index) => {
    const [near, far] = [index / 6, (index + 0.5) / 6].map((share) => share ** 1.7)
    const y = (share = 0) => street + (height - street) * share
    const x = (share = 0) => width / 2 + (middle - width / 2) * 0.25 * (1 - share)
    const half = (share = 0) => 3 + 15 * share
    return path(
      svg`M${x(near) - half(near)} ${y(near)}H${x(near) + half(near)}L${x(far) + half(far)} ${y(far)}` +
        svg`H${x(far) - half(far)}Z`,
      shade,
      0.4,
    )
  }).join('')
}

/** Draws the reflections of the lights on a wet street. */
function gleams({ width, height, palette }: Stage, random: Random, street: number): string {
  return Array.from({ length: 46 }, () => {
    const shade = random() < 0.6 ? colour(0.86, 0.13, 75) : random() < 0.5 ? palette.accent : palette.second
    const y = street + random() ** 1.5 * (height - street) * 0.7
    const long = 30 + random() * 130
    return (
      svg`<rect x="${random() * width}" y="${y}" width="${4 + random() * 10}" height="${long}" rx="5"` +
      svg` fill="${hex(shade)}" fill-opacity=".2"/>`
    )
  }).join('')
}

function lamps(stage: Stage, street: number): string {
  const { width, palette, scale } = stage
  const on = palette.hour === 'night' || palette.hour === 'dusk'
  const glow =
    '<radialGradient id="lamp"><stop offset="0" stop-color="#ffdf9e" stop-opacity=".75"/>' +
    '<stop offset="1" stop-color="#ffdf9e" stop-opacity="0"/></radialGradient>'
  const shade = hex(palette.front)
  const posts = [0.09, 0.91].map((share) => {
    const x = width * share
    const tall = 300 * scale
    const foot = street + 40
    const head =
      svg`<circle cx="${x}" cy="${foot - tall}" r="${13 * scale}"` +
      svg` fill="${on ? '#fff0cf' : hex(palette.paper)}"/>`
    const halo = on ? svg`<circle cx="${x}" cy="${foot - tall}" r="${120 * scale}" fill="url(#lamp)"/>` : ''
    return (
      halo +
      box(x - 4 * scale, foot - tall, 8 * scale, tall, shade) +
      box(x - 10 * scale, foot - 26 * scale, 20 * scale, 26 * scale, shade) +
      head
    )
  })
  return glow + posts.join('')
}

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
    return (
      svg`<rect x="${random() * width - 200}" y="${y}" width="${between(random, 160, 620)}" height="2.4"` +
      svg` rx="1" fill="${hex(palette.front)}" fill-opacity=".13"/>`
    )
  }).join('')
  const shelf = bokeh(stage, random)
  return {
    far: room + view(stage, top) + shelf,
    middle: patch(stage),
    ground: board + grain,
    front: '',
  }
}

/** Draws the window that the light comes from, with the sky behind it. */
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
    svg`M${x} ${y + tall * 0.78}` +
      svg`Q${x + across * 0.3} ${y + tall * 0.55} ${x + across * 0.6} ${y + tall * 0.74}` +
      svg`T${x + across} ${y + tall * 0.66}V${y + tall}H${x}Z`,
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

/** Draws the light that falls through the window onto the wall. */
function patch({ width, height, palette, light }: Stage): string {
  const x = light.side < 0 ? width * 0.55 : width * 0.16
  const lean = -light.side * 90
  const data = [0, 1].map((pane) => {
    const left = x + pane * 130
    return svg`M${left} ${height * 0.12}h110l${lean} ${height * 0.36}h-110Z`
  })
  return path(data.join(''), hex(palette.light), palette.hour === 'night' ? 0.07 : 0.2)
}

/** Draws distant lamps, out of focus. */
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
    '<radialGradient id="sweep" gradientUnits="userSpaceOnUse"' +
    svg` cx="${width / 2 + light.side * width * 0.16}" cy="${height * 0.36}"` +
    svg` r="${Math.max(width, height) * 0.72}">` +
    `<stop offset="0" stop-color="${hex(mix(wall, palette.light, 0.55))}"/><stop offset=".5"` +
    ` stop-color="${hex(wall)}"/>` +
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
          svg`M${x - arch} ${height * 0.7}V${height * 0.42}a${arch} ${arch} 0 0 1 ${arch * 2} 0V${height * 0.7}Z`,
          hex(mix(wall, palette.second, 0.32)),
          0.8,
        )
  return {
    far: sweep + disc,
    middle: shade + ground(level(stage, height * 0.7), height + 40, 'url(#floor)'),
    ground: !stage.isStill
      ? ''
      : svg`<ellipse cx="${x - light.side * across * 0.35}" cy="${top + height * 0.2}" rx="${across * 1.35}"` +
        svg` ry="${depth * 1.2}" fill="${hex(palette.front)}" fill-opacity=".22"/>` +
        path(
          svg`M${x - across} ${top}V${top + height * 0.16}` +
            svg`A${across} ${depth} 0 0 0 ${x + across} ${top + height * 0.16}V${top}Z`,
          side,
        ) +
        svg`<ellipse cx="${x}" cy="${top}" rx="${across}" ry="${depth}" fill="${String(lid)}"/>`,
    front: '',
  }
}
