// Draws the other two grounds. A city is a street with rows of houses, whose windows are lit after dark. A room is a table
// by a window, or a studio with a stand.
import { mix } from './palette.js'
import { between } from './random.js'
import { below, fade, floor, glow, type Layers, many, type Stage, svg } from './stage.js'

const WARM = '#ffcf7d'

/** Whether windows and lamps are lit. */
const isDark = ({ palette }: Stage): boolean => /night|dusk/.test(palette.hour)

export function drawCity(stage: Stage): Layers {
  const { palette, height, width, reading, scale, random } = stage
  const [street, isLit, tall] = [below(stage, 0.34), isDark(stage), 300 * scale]
  const asphalt = mix(palette.near, palette.front, isLit ? 0.5 : 0.15)
  const road = reading.season === 'winter' ? mix(asphalt, palette.paper, isLit ? 0.45 : 0.85) : asphalt
  const lights = [WARM, palette.accent, palette.second]
  const gleams = many(
    isLit || reading.weather === 'rain' ? 46 : 0,
    (
      at,
    ) => svg`<rect x="${random() * width}" y="${street + random() ** 1.5 * (height - street) * 0.8}" width="${4 + random() * 10}"
      height="${30 + random() * 130}" rx="5" fill="${lights[at % 3] ?? WARM}" fill-opacity=".2"/>`,
  )
  const lamp = (share: number, at: number) =>
    svg`${isLit ? glow(`lamp-${at}`, width * share, street + 40 - tall, tall / 2, '#ffdf9e', 0.75) : ''}
      <path d="M${width * share - 4} ${street + 40 - tall}h8v${tall - 26}h8v26h-24v-26h8Z" fill="${palette.front}"/>
      <circle cx="${width * share}" cy="${street + 40 - tall}" r="${13 * scale}" fill="${isLit ? '#fff0cf' : palette.paper}"/>`
  const ground = floor(
    stage,
    'street',
    street,
    `0 ${mix(road, palette.sky[3], 0.3)}, .3 ${road}, 1 ${mix(road, palette.front, 0.6)}`,
  )
  return [houses(stage, false) + houses(stage, true), ground + gleams + [0.09, 0.91].map(lamp).join('')]
}

/** Draws a row of houses: the nearer ones, or the higher ones behind them. Their windows are one pattern. */
function houses(stage: Stage, isNear: boolean): string {
  const { palette, light, scale, reading, random } = stage
  const [foot, high, pane] = isNear ? [below(stage, 0.34) + 4, 360, 12] : [below(stage, 0.1), 430, 6.5]
  const [shade, name] = isNear ? [palette.middle, 'near'] : [palette.far, 'far']
  const lit = isDark(stage) ? WARM : mix(shade, palette.light, 0.4)
  const windows = many(35, (at) => {
    const isOn = random() < (isNear ? 0.4 : 0.12)
    return svg`<rect x="${pane * (0.5 + (at % 5) * 1.8)}" y="${pane * (0.5 + Math.floor(at / 5) * 2.1)}" width="${pane * 0.95}"
      height="${pane * (isOn || random() < 0.6 ? 1.25 : 0)}" fill="${isOn ? lit : mix(shade, palette.front, 0.3)}"/>`
  })
  let drawing = svg`<pattern id="${name}" patternUnits="userSpaceOnUse" width="${pane * 9}" height="${pane * 14.7}">${windows}</pattern>`
  for (let x = -20, width = 0; x < stage.width + 20; x += width) {
    width = pane * 1.8 * Math.round(between(random, 4, 7.5))
    // Houses in front of the light are lower, so that the street opens towards the light.
    const gap = Math.min(1, Math.abs(x + width / 2 - light.x) / 360)
    const top = foot - between(random, 170, high) * scale * (0.5 + 0.5 * gap)
    const wall = mix(shade, random() < 0.3 ? palette.accent : palette.front, random() * 0.16)
    const roof =
      reading.season === 'winter'
        ? `h${width}v-12h${-width}Z`
        : svg`l${width / 2} ${random() < 0.3 ? -width * 0.4 : 0}l${width / 2} ${width * 0.4}Z`
    drawing += svg`<path d="M${x} ${top + 1}${roof}" fill="${reading.season === 'winter' ? palette.paper : wall}"/>
      <path d="M${x} ${top}h${width + 1}V${stage.height}h${-width - 1}Z" fill="${wall}"/>
      <path d="M${x + pane / 3} ${top + pane}h${width - pane * 0.6}V${foot - pane}h${pane * 0.6 - width}Z" fill="url(#${name})"/>
      <path d="M${light.x > x ? x + width - 5 : x} ${top}h5V${foot}h-5Z" fill="${palette.light}" fill-opacity=".25"/>`
  }
  return drawing
}

/** Heights of the table and of the stand in a studio, as shares of the stage. */
export const TABLE_TOP = 0.62
export const STAND_TOP = 0.8

export function drawTable(stage: Stage): Layers {
  const { width, height, palette, light, random } = stage
  const [top, plank, isLeft] = [height * TABLE_TOP, palette.near, light.side < 0]
  const grain = many(
    16,
    () => svg`<rect x="${random() * width - 200}" y="${top + 14 + random() ** 1.4 * (height - top)}"
      width="${between(random, 160, 620)}" height="2.4" fill="${palette.front}" fill-opacity=".13"/>`,
  )
  // A window, the sky behind it, and its light on the wall.
  const [across, tall] = [Math.min(430, width * 0.36), top * 0.72]
  const [x, y] = [isLeft ? width * 0.06 : width * 0.94 - across, top * 0.1]
  const wall = mix(mix(palette.sky[2], plank, 0.2), palette.ink, palette.hour === 'night' ? 0.35 : 0)
  const back = svg`<rect x="-20" y="-20" width="${width + 40}" height="${height + 40}" fill="${wall}"/>
    ${fade('pane', `0 ${palette.sky[1]}, 1 ${palette.sky[3]}`)}
    <rect x="${x}" y="${y}" width="${across}" height="${tall}" fill="url(#pane)"/>
    <circle cx="${x + across * 0.7}" cy="${y + tall * 0.26}" r="32" fill="${palette.light}" fill-opacity=".9"/>
    <path d="M${x} ${y + tall}v${-tall * 0.2}q${across / 2} ${-tall * 0.3} ${across} ${-tall * 0.06}v${tall * 0.26}Z"
      fill="${mix(palette.middle, palette.sky[3], 0.4)}"/>
    <path d="M${x - 7} ${y - 7}h${across + 14}v${tall + 14}h${-across - 14}ZM${x + across / 2} ${y}v${tall}M${x} ${y + tall / 2}h${across}"
      fill="none" stroke="${mix(palette.paper, plank, 0.12)}" stroke-width="14"/>
    <path d="M${width * (isLeft ? 0.55 : 0.16)} ${height * 0.12}h110l${-light.side * 90} ${height * 0.36}h-110ZM${width * (isLeft ? 0.55 : 0.16) + 130}
      ${height * 0.12}h110l${-light.side * 90} ${height * 0.36}h-110Z" fill="${palette.light}" fill-opacity=".18"/>`
  const board = `0 ${mix(plank, palette.light, 0.4)}, .25 ${plank}, 1 ${mix(plank, palette.front, 0.45)}`
  return [back, floor(stage, 'board', top, board) + grain]
}

export function drawStudio(stage: Stage, hasStand: boolean): Layers {
  const { width, height, palette, light, scale } = stage
  const plain = mix(palette.sky[2], palette.accent, 0.28)
  const [bright, dark] = [mix(plain, palette.light, 0.5), mix(plain, palette.front, 0.34)]
  const [x, top, across] = [width / 2, height * STAND_TOP, Math.min(width * 0.36, 330 * Math.sqrt(scale))]
  const back = svg`<rect x="-20" y="-20" width="${width + 40}" height="${height + 40}" fill="${dark}"/>
    ${glow('sweep', x + light.side * width * 0.16, height * 0.36, Math.max(width, height) * 0.9, bright)}
    <circle cx="${x}" cy="${height * 0.44}" r="${across}" fill="${mix(plain, palette.second, 0.36)}" fill-opacity=".8"/>
    ${floor(stage, 'floor', height * 0.74, `0 ${mix(plain, palette.light, 0.12)}, 1 ${mix(plain, palette.front, 0.5)}`)}`
  const stand = svg`<path d="M${x - across} ${top}v${height}h${across * 2}v${-height}Z" fill="${dark}"/>
    <ellipse cx="${x}" cy="${top}" rx="${across}" ry="${across * 0.2}" fill="${bright}"/>`
  return [back, hasStand ? stand : '']
}
