// Draws the other two grounds. A city is a street with rows of houses, whose windows are lit after dark. A room is a table
// by a window, a studio with a stand, or a wall with shapes for an abstract picture.
import { colour, mix } from '../colour.js'
import { between, type Random } from '../random.js'
import { fillBelow, type Layers, ridge } from './land.js'
import { below, box, circle, fade, fill, floor, glow, many, path, type Stage, svg } from './stage.js'

const WARM = colour(0.88, 0.13, 78)

/** Whether windows and lamps are lit. */
const isDark = ({ palette }: Stage): boolean => palette.hour === 'night' || palette.hour === 'dusk'

export function drawCity(stage: Stage, random: Random): Layers {
  const { palette, height, width, reading, scale } = stage
  const [street, isWhite, isLit] = [below(stage, 0.34), reading.season === 'winter', isDark(stage)]
  const asphalt = mix(palette.near, palette.front, isLit ? 0.5 : 0.15)
  const road = isWhite ? mix(asphalt, palette.paper, isLit ? 0.45 : 0.85) : asphalt
  const foot = mix(road, palette.front, isWhite ? 0.15 : 0.7)
  const lights = [WARM, palette.accent, palette.second]
  const gleams = many(isLit || reading.weather === 'rain' ? 46 : 0, (at) => {
    const [x, y] = [random() * width, street + random() ** 1.5 * (height - street) * 0.8]
    return box([x, y, 4 + random() * 10, 30 + random() * 130], lights[at % 3] ?? WARM, 5, 0.2)
  })
  const lamps = [0.09, 0.91].map((share, at) => {
    const [x, top, tall] = [width * share, street + 40 - 300 * scale, 300 * scale]
    const halo = isLit ? glow(`lamp-${at}`, x, top, 150 * scale, '#ffdf9e', 0.75) : ''
    const head = circle(x, top, 13 * scale, isLit ? '#fff0cf' : palette.paper)
    return halo + path(svg`M${x - 4} ${top}h8v${tall - 26}h8v26h-24v-26h8Z`, palette.front) + head
  })
  const horizon = mix(road, palette.sky[3], 0.3)
  return {
    back: houses(stage, random, false) + houses(stage, random, true),
    ground: floor(stage, 'street', street, [0, horizon], [0.3, road], [1, foot]) + gleams + lamps.join(''),
  }
}

/** Draws a row of houses: the nearer ones, or the higher ones behind them. */
function houses(stage: Stage, random: Random, isNear: boolean): string {
  const { palette, light, scale, reading } = stage
  const [foot, high, breadth] = isNear ? [below(stage, 0.34) + 4, 360, 84] : [below(stage, 0.1), 430, 46]
  const [shade, lit, pane] = [isNear ? palette.middle : palette.far, isNear ? 0.4 : 0.1, breadth * 0.14]
  let drawing = ''
  for (let x = -20, width = 0; x < stage.width + 20; x += width) {
    width = between(random, breadth, breadth * 1.9) * Math.sqrt(scale)
    // Houses in front of the light are lower, so that the street opens towards the light.
    const gap = Math.min(1, Math.abs(x + width / 2 - light.x) / 360)
    const top = foot - between(random, 170, high) * scale * (0.5 + 0.5 * gap)
    const wall = mix(shade, random() < 0.3 ? palette.accent : palette.front, random() * 0.16)
    const roof = svg`M${x} ${top + 1}l${width / 2} ${-width * 0.4}l${width / 2} ${width * 0.4}Z`
    drawing +=
      box([x, top, width + 1, stage.height - top], wall) +
      box([light.x > x ? x + width - 5 : x, top, 5, foot - top], palette.light, 0, 0.25)
    if (reading.season === 'winter') drawing += box([x - 2, top - 7, width + 5, 12], palette.paper, 5)
    else if (random() < 0.3) drawing += path(roof, wall)
    for (let y = top + pane * 1.4; y < foot - pane * 2; y += pane * 2.1) {
      for (let left = x + pane; left < x + width - pane * 1.4; left += pane * 1.8) {
        const isOn = random() < lit
        const glass = isOn && isDark(stage) ? WARM : mix(wall, isOn ? palette.light : palette.front, 0.28)
        if (isOn || random() < 0.55) drawing += box([left, y, pane * 0.95, pane * 1.25], glass)
      }
    }
  }
  return drawing
}

/** Heights of the table and of the stand in a studio, as shares of the stage. */
export const TABLE_TOP = 0.62
export const STAND_TOP = 0.8

export function drawTable(stage: Stage, random: Random): Layers {
  const { width, height, palette, light } = stage
  const [top, plank, isNight] = [height * TABLE_TOP, palette.near, palette.hour === 'night']
  const plaster = mix(mix(palette.sky[2], plank, 0.2), palette.ink, isNight ? 0.35 : 0)
  const grain = many(16, () => {
    const [x, y] = [random() * width - 200, top + 14 + random() ** 1.4 * (height - top)]
    return box([x, y, between(random, 160, 620), 2.4], palette.front, 1, 0.13)
  })
  // A window, the sky behind it, and its light on the wall.
  const across = Math.min(430, width * 0.36)
  const [x, y, tall] = [light.side < 0 ? width * 0.06 : width * 0.94 - across, top * 0.1, top * 0.72]
  const [left, lean] = [light.side < 0 ? width * 0.55 : width * 0.16, -light.side * 90]
  const patch = [0, 130].map((by) => svg`M${left + by} ${height * 0.12}h110l${lean} ${height * 0.36}h-110Z`)
  const hill = svg`M${x} ${y + tall}v${-tall * 0.2}q${across * 0.5} ${-tall * 0.3} ${across} ${-tall * 0.06}V${y + tall}Z`
  const bars = svg`M${x - 7} ${y - 7}h${across + 14}v${tall + 14}h${-across - 14}Z
    M${x + across / 2} ${y}v${tall}M${x} ${y + tall / 2}h${across}`
  const dark = mix(plank, palette.front, 0.45)
  return {
    back:
      fill(stage, plaster) +
      fade('pane', y, y + tall, [0, palette.sky[1]], [1, palette.sky[3]]) +
      box([x, y, across, tall], 'url(#pane)') +
      circle(x + across * 0.7, y + tall * 0.26, 32, palette.light, 0.9) +
      path(hill, mix(palette.middle, palette.sky[3], 0.4)) +
      svg`<path d="${bars}" fill="none" stroke="${mix(palette.paper, plank, 0.12)}" stroke-width="14"/>` +
      path(patch.join(''), palette.light, isNight ? 0.07 : 0.2),
    ground: floor(stage, 'board', top, [0, mix(plank, palette.light, 0.4)], [0.25, plank], [1, dark]) + grain,
  }
}

export function drawStudio(stage: Stage): Layers {
  const { width, height, palette, light, scale } = stage
  const plain = mix(palette.sky[2], palette.accent, 0.28)
  const [bright, dark] = [mix(plain, palette.light, 0.5), mix(plain, palette.front, 0.34)]
  const [pale, deep] = [mix(plain, palette.light, 0.12), mix(plain, palette.front, 0.5)]
  const [x, top, across] = [width / 2, height * STAND_TOP, Math.min(width * 0.36, 330 * Math.sqrt(scale))]
  const stand =
    path(svg`M${x - across} ${top}v${height}h${across * 2}v${-height}Z`, dark) +
    svg`<ellipse cx="${x}" cy="${top}" rx="${across}" ry="${across * 0.2}" fill="${bright}"/>`
  return {
    back:
      fill(stage, dark) +
      glow('sweep', x + light.side * width * 0.16, height * 0.36, Math.max(width, height) * 0.9, bright) +
      circle(x, height * 0.44, across, mix(plain, palette.second, 0.36), 0.8) +
      floor(stage, 'floor', height * 0.74, [0, pale], [1, deep]),
    ground: stage.isStill ? stand : '',
  }
}

/** Draws discs and ribbons in the colours of the prompt. */
export function drawShapes(stage: Stage, random: Random): Layers {
  const { width, height, palette } = stage
  const pale = [palette.accent, palette.second].map((shade) => mix(shade, palette.paper, 0.5))
  const shades = [palette.accent, palette.second, ...pale, palette.paper]
  const shaded = (name: string, at: number, top: number, bottom: number) => {
    const shade = shades[at % shades.length] ?? palette.accent
    return fade(name, top, bottom, [0, mix(shade, palette.paper, 0.25)], [1, mix(shade, palette.ink, 0.3)])
  }
  const discs = many(7, (at) => {
    const [x, y, radius] = [random() * width, between(random, 0.05, 0.8) * height, 320 - at * 38]
    return shaded(`disc-${at}`, at, y - radius, y + radius) + circle(x, y, radius, `url(#disc-${at})`)
  })
  const ribbons = [0.66, 0.88].map((share, at) => {
    const line = ridge(random, height * share, between(random, 160, 360))
    const shade = shaded(`ribbon-${at}`, 1 - at, height * 0.3, height * 1.2)
    return shade + fillBelow(stage, line, `url(#ribbon-${at})`)
  })
  const wall = fill(stage, mix(palette.sky[1], palette.accent, 0.18))
  return { back: `${wall}${ribbons[0]}${discs}${ribbons[1]}`, ground: '' }
}
