// Draws the grounds: land (also under water), a city on it, the sea with or without a beach, and a room (a table by a
// window, or a studio with a stand).
import { EMOJI } from './emoji.mjs'
import { repaint } from './figure.js'
import { mix } from './palette.js'
import { between } from './random.js'
import {
  below,
  fade,
  fillBelow,
  floor,
  glow,
  type Layers,
  many,
  ridge,
  STAND_TOP,
  type Stage,
  slope,
  strew,
  svg,
  TABLE_TOP,
} from './stage.js'

/** What grows on land. Each is one unit high, with the foot at 0, 0. */
const CONIFER =
  'M-.24-.1q.168-.12.24-.32q.072.2.24.32zM-.19-.3q.133-.12.19-.32q.057.2.19.32zM-.14-.5q.098-.12.14-.32q.042.2.14.32z' +
  'M-.09-.7q.063-.12.09-.32q.027.2.09.32zM-.03 0v-.2h.06v.2z'

/** The heights of three lines of land, the furthest first, the sizes of what grows on them, and its density. */
const RELIEFS: Readonly<
  Record<string, readonly [heights: readonly number[], sizes: readonly number[], density: number]>
> = {
  hills: [[130, 110, 60], [46, 92, 0], 0.3],
  mountains: [[440, 230, 60], [0, 0, 74], 0.5],
  forest: [[50, 50, 50], [230, 330, 0], 1.2],
  desert: [[90, 130, 90], [], 0],
  space: [[60, 150, 50], [], 0],
  underwater: [[90, -70, -220], [240, 190, 160], 1.3],
  city: [[0, 0, 0], [330, 250, 0], 1.2],
}

export function drawLand(stage: Stage): Layers {
  const { palette, place, scale, reading, random, width, height, light } = stage
  const season = /hills|forest|mountains/.test(place) ? reading.season : undefined
  const [heights, sizes, density] = RELIEFS[place] ?? [[], [], 0]
  const isWhite = season === 'winter'
  const isTown = place === 'city'
  const tree = !isWhite && (place === 'hills' || season !== undefined) ? 'round' : 'conifer'
  const plant = isTown || place === 'underwater' ? place : tree
  const dyes = { spring: '#f7b9cc', autumn: '#d8602a', winter: '#123838', summer: palette.middle }
  const leaves = mix(mix(palette.middle, dyes[season ?? 'summer'], isWhite ? 0.9 : 0.5), palette.front, 0.2)
  const [far, middle, near = ''] = [palette.far, palette.middle, palette.near].map((shade, at) => {
    const isRocky = at < 2 && /mountains|space/.test(place)
    const line = ridge(random, below(stage, 0.04 + at * 0.19), (heights[at] ?? 0) * scale, isRocky)
    const size = (sizes[at] ?? 0) * scale
    const plants = many(size > 0 ? width / size / (0.36 - density * 0.14) : 0, (index) => {
      const x = random() * width
      // In groups with gaps.
      if (Math.sin(x / (size * 3.1) + size) + random() * 1.4 - 0.7 < 1 - density * 2) return ''
      const fill = mix(
        tree === plant ? mix(leaves, palette.far, at === 0 ? 0.6 : 0) : shade,
        palette.ink,
        random() * 0.15,
      )
      return svg`<use href="#${plant}${isTown ? index % 3 : ''}" fill="${fill}" transform="translate(${x} ${line(x) + 10}) scale(${size * between(random, 0.5, 1.2)})"/>`
    })
    const end = at < 2 ? mix(shade, palette.sky[3], 0.42) : mix(shade, palette.front, isWhite ? 0.3 : 0.5)
    const isCapped = place === 'mountains' && at === 0 && season !== 'summer'
    return (
      plants +
      slope(stage, `slope-${at}`, line, shade, end, isCapped ? mix(shade, palette.paper, 0.8) : shade)
    )
  })
  const symbols = svg`<defs><g id="conifer"><path d="${isWhite ? CONIFER : ''}" fill="${palette.paper}" transform="translate(${light.side * 0.03} -.03)"/>
    <path d="${CONIFER}"/></g><g id="round"><path d="M-.03 0v-.66h.06v.66z" fill="${mix(palette.front, palette.ink, 0.5)}"/>
    <circle cy="-.66" r=".32"/><circle cx="-.2" cy="-.54" r=".2"/><circle cx=".2" cy="-.56" r=".21"/>
    <circle cx="${light.side * 0.06}" cy="-.71" r=".25" fill="${palette.light}" fill-opacity=".1"/>
    <circle cx="${light.side * 0.13}" cy="-.76" r=".14" fill="${palette.light}" fill-opacity=".14"/></g>
    <path id="underwater" d="M-.02 0c.11-.3-.11-.7.08-1c.02.3.01.7-.03 1z" fill-opacity=".6"/></defs>`
  const grass = many(isWhite || !/hills|forest|mountains/.test(place) ? 0 : width / 12, (at) => {
    const tall = between(random, 35, 90)
    return svg`M${at * 12} ${height}q5 ${-tall / 2} ${tall * between(random, -0.28, 0.34)} ${-tall}q5 ${tall / 2} 6 ${tall}Z`
  })
  const back = { space: planet, underwater: water, city: houses }[place as 'space']?.(stage) ?? ''
  return [symbols + back + far + middle, `${near}<path d="${grass}" fill="${palette.front}"/>`]
}

/** Draws a planet with a ring, and nebulas. */
function planet({ palette, width, horizon, random, light, scale, reading }: Stage): string {
  const mist = [palette.accent, palette.second].map((shade, at) =>
    glow(`nebula-${at}`, random() * width, random() * horizon, 400, shade, 0.36),
  )
  return svg`${mist.join('')}<g transform="translate(${light.x} ${light.y + 80}) scale(${13 * Math.sqrt(scale)}) translate(-16 -16)">
    ${repaint(EMOJI.figures['ringed-planet']?.body ?? '', reading.tints[0])}</g>`
}

/** Draws deep water, with rays of light and bubbles. */
function water(stage: Stage): string {
  const { width, height, palette, light, random } = stage
  const { sky, near, front, paper } = palette
  const stops = svg`0 ${mix(sky[2], near, 0.25)}, .45 ${mix(sky[0], near, 0.55)}, 1 ${mix(near, front, 0.55)}`
  const rays = many(7, (at) => {
    const [x, reach] = [width * ((at + random()) / 7), between(random, 60, 190)]
    return svg`M${x} -20h${reach * 0.5}L${x - light.side * 190 + reach} ${height}h${-reach * 1.4}Z`
  })
  const bubbles = strew(stage, 34, height, [3, 15], `<circle r="1" fill="${paper}" fill-opacity=".2"/>`)
  return `${floor(stage, 'deep', -20, stops)}${fade('ray', `0 ${palette.light} .26, .9 ${palette.light} 0`)}<path d="${rays}" fill="url(#ray)"/>${bubbles}`
}

const WARM = '#ffcf7d'
const isDark = ({ palette }: Stage): boolean => /night|dusk/.test(palette.hour)

/** Defines three houses, whose windows are lit after dark. */
function houses(stage: Stage): string {
  const { palette, random } = stage
  return [0.3, 0.24, 0.2]
    .map((half, at) => {
      const windows = many(27, (index) => {
        const fill = random() < 0.4 ? (isDark(stage) ? WARM : palette.light) : palette.front
        return svg`<path d="M${(index % 3) * half * 0.6 - half * 0.77} ${-0.93 + Math.floor(index / 3) * 0.1}h${half * 0.34}v.06h${-half * 0.34}Z"
        fill="${fill}" fill-opacity=".8"/>`
      })
      return svg`<g id="city${at}"><path d="M${-half} 0v-1l${half} ${at * -0.08}l${half} ${at * 0.08}v1Z"/>${windows}</g>`
    })
    .join('')
}

/** Draws a street with lamps in front of two rows of houses. */
export function drawCity(stage: Stage): Layers {
  const { palette, height, width, reading, scale, random } = stage
  const [street, tall] = [below(stage, 0.26), 300 * scale]
  const asphalt = mix(palette.near, palette.front, isDark(stage) ? 0.5 : 0.15)
  const road = reading.season === 'winter' ? mix(asphalt, palette.paper, 0.6) : asphalt
  const stops = `0 ${mix(road, palette.sky[3], 0.3)}, .3 ${road}, 1 ${mix(road, palette.front, 0.6)}`
  const gleams = many(isDark(stage) || reading.weather === 'rain' ? 46 : 0, (at) => {
    const fill = at % 2 === 0 ? WARM : palette.accent
    return svg`<rect x="${random() * width}" y="${street + random() ** 1.5 * (height - street) * 0.8}" width="${4 + random() * 10}"
      height="${30 + random() * 130}" rx="5" fill="${fill}" fill-opacity=".2"/>`
  })
  const lamps = [0.09, 0.91].map((share, at) => {
    const [x, y] = [width * share, street + 40 - tall]
    return svg`${isDark(stage) ? glow(`lamp-${at}`, x, y, tall / 2, '#ffdf9e', 0.75) : ''}<path d="M${x - 4} ${y}h8v${tall - 26}h8v26h-24v-26h8Z"
      fill="${palette.front}"/><circle cx="${x}" cy="${y}" r="${13 * scale}" fill="#fff0cf"/>`
  })
  return [drawLand(stage)[0], floor(stage, 'street', street, stops) + gleams + lamps.join('')]
}

export function drawSea(stage: Stage): Layers {
  const { width, height, horizon, palette, scale, light, random, place, reading } = stage
  const { near, front, far, sky } = palette
  const wave = (share: number, tall: number, dark: number) =>
    fillBelow(stage, ridge(random, below(stage, share), tall * scale), mix(near, front, dark), 0.42)
  const glitter = many(130, (at) => {
    const [depth, isRoad] = [(at / 130) ** 1.35, random() < 0.72]
    const x = isRoad ? light.x + between(random, -1, 1) * (26 + depth * 190) : random() * width
    return svg`<rect x="${x - 30}" y="${horizon + 5 + depth * (height - horizon) * 0.9}" width="${(8 + depth * 90) * between(random, 0.5, 1.4)}"
      height="${1.6 + depth * 5}" rx="3" fill="${palette.light}" fill-opacity="${isRoad ? 0.5 : 0.14}"/>`
  })
  const stops = svg`0 ${mix(sky[3], near, 0.3)}, .35 ${mix(sky[2], near, 0.72)}, 1 ${mix(near, front, 0.55)}`
  const shore = slope(stage, 'shore', ridge(random, horizon + 4, 60 * scale), far, mix(far, sky[3], 0.2))
  const [back, ground] = [shore + floor(stage, 'water', horizon, stops) + glitter, wave(0.3, 16, 0.05)]
  if (place === 'sea') return [back, ground + wave(0.52, 24, 0.25), wave(0.86, 34, 0.6)]
  const dim = { day: 0.04, dawn: 0.2, grey: 0.3, dusk: 0.34, night: 0.66 }[palette.hour]
  const sand = reading.season === 'winter' ? near : mix(mix('#f0dcb0', sky[2], 0.12), '#38293a', dim)
  const line = ridge(random, below(stage, 0.46), 46 * scale)
  const foam = fillBelow(stage, (x) => line(x) - 9, palette.paper, 0.75)
  return [back, ground + foam + slope(stage, 'sand', line, sand, mix(sand, front, 0.35))]
}

/** Draws a table in front of a window, with the light of the window on the wall. */
export function drawTable(stage: Stage): Layers {
  const { width, height, palette, light } = stage
  const [top, plank, side] = [height * TABLE_TOP, palette.near, light.side]
  const wall = mix(mix(palette.sky[2], plank, 0.2), palette.ink, palette.hour === 'night' ? 0.35 : 0)
  const [across, tall] = [Math.min(430, width * 0.36), top * 0.72]
  const spot = svg`M${width * (0.5 - side * 0.2) - 110} ${height * 0.12}h110l${-side * 90} ${height * 0.36}h-110Zm130 0h110l${-side * 90} ${height * 0.36}h-110Z`
  const back = svg`<rect x="-20" y="-20" width="${width + 40}" height="${height + 40}" fill="${wall}"/>
    ${fade('pane', `0 ${palette.sky[1]}, 1 ${palette.sky[3]}`)}<path d="${spot}" fill="${palette.light}" fill-opacity=".18"/>
    <g transform="translate(${side < 0 ? width * 0.06 : width * 0.94 - across} ${top * 0.1}) scale(${across / 10} ${tall / 10})">
    <path d="M0 0h10v10H0Z" fill="url(#pane)"/><path d="M0 10v-2q5-3 10-.6v2.6Z" fill="${mix(palette.middle, palette.sky[3], 0.4)}"/>
    <ellipse cx="7" cy="2.6" rx="${320 / across}" ry="${320 / tall}" fill="${palette.light}" fill-opacity=".9"/>
    <path d="M-.2-.2h10.4v10.4H-.2ZM5 0v10M0 5h10" fill="none" stroke="${mix(palette.paper, plank, 0.12)}" stroke-width=".33"/></g>`
  return [
    back,
    floor(
      stage,
      'board',
      top,
      `0 ${mix(plank, palette.light, 0.4)}, .25 ${plank}, 1 ${mix(plank, palette.front, 0.45)}`,
    ),
  ]
}

/** Draws a studio, with a stand for a thing. */
export function drawStudio({ reading, hasReferences, ...stage }: Stage): Layers {
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
  const isThing = EMOJI.figures[reading.actors[0]?.name ?? '']?.stance === 'thing'
  return [back, isThing && !hasReferences ? stand : '']
}
