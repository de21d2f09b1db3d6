// Draws the grounds: land (also under water), a city on it, the sea with or without a beach, and a room (a table by a
// window, or a studio with a stand).
import { EMOJI } from './emoji.mjs'
import { repaint } from './figure.js'
import {
  below,
  between,
  fade,
  fillBelow,
  floor,
  glow,
  type Layers,
  many,
  mix,
  ridge,
  type Stage,
  slope,
  strew,
  svg,
  TABLE_TOP,
} from './stage.js'

/** What stands on land. Each is one unit high, with the foot at 0, 0. */
const PLANTS = `<defs><path id="underwater" d="M-.02 0c.11-.3-.11-.7.08-1c.02.3.01.7-.03 1z" fill-opacity=".6"/>
  <path id="conifer" d="M-.24-.1q.168-.12.24-.32q.072.2.24.32zM-.19-.3q.133-.12.19-.32q.057.2.19.32zM-.14-.5q.098-.12.14-.32
    q.042.2.14.32zM-.09-.7q.063-.12.09-.32q.027.2.09.32zM-.03 0v-.2h.06v.2z"/>
  <g id="winter"><use href="#conifer" x="-.03" y="-.03" fill="#f4f9ff"/><use href="#conifer"/></g>
  <g id="summer"><path d="M-.03 0v-.66h.06v.66z" fill="#2b2424"/><circle cy="-.66" r=".32"/><circle cx="-.2" cy="-.54" r=".2"/>
    <circle cx=".2" cy="-.56" r=".21"/><circle cx=".07" cy="-.72" r=".24" fill="#fff" fill-opacity=".09"/></g>
  <use id="spring" href="#summer"/><use id="autumn" href="#summer"/></defs>`
/** Lamps and windows after dark. */
const WARM = '#ffcf7d'
const LEAVES: Readonly<Record<string, string>> = {
  spring: '#e8a9bd',
  summer: '#325a2f',
  autumn: '#b4502a',
  winter: '#0e3034',
  conifer: '#12383c',
}

/** Land: the height of its furthest range, and the size and number of what stands on it. */
const RELIEFS: Readonly<Record<string, readonly number[]>> = {
  hills: [130, 90, 1.5],
  mountains: [440, 75, 2],
  forest: [50, 330, 6],
  underwater: [90, 250, 9],
  city: [0, 330, 4],
}

export function drawLand(stage: Stage): Layers {
  const { palette, place, scale, reading, random, width, height } = stage
  const [tall = 130, size = 1, density = 0] = RELIEFS[place] ?? []
  const isBuilt = /city|underwater/.test(place)
  const plant = isBuilt ? place : (reading.season ?? (place === 'hills' ? 'summer' : 'conifer'))
  const leaves = LEAVES[plant] ?? palette.ink
  const [far, middle, near = ''] = [palette.far, palette.middle, palette.near].map((shade, at) => {
    const isRocky = at < 2 && /mountains|space/.test(place)
    const line = ridge(random, below(stage, 0.04 + at * 0.19), (tall * scale) / (at + 1), isRocky)
    const isBare = isRocky || (at === 2 && !/mountains|underwater/.test(place))
    const plants = many(isBare ? 0 : (density * width) / size, (index) => {
      const x = random() * width
      const fill = mix(shade, leaves, (isBuilt ? 0.2 : 0.6) * between(random, 0.8, 1.2) + at * 0.1)
      return svg`<use href="#${plant}${place === 'city' ? index % 3 : ''}" fill="${fill}"
        transform="translate(${x} ${line(x) + 10}) scale(${size * scale * between(random, 0.35, 0.7) * (1 + at * 0.5)})"/>`
    })
    const isCapped = at === 0 && place === 'mountains' && reading.season !== 'summer'
    const end = at < 2 ? mix(shade, palette.haze, 0.42) : mix(shade, palette.front, 0.4)
    return plants + slope(stage, `slope-${at}`, line, shade, end, isCapped ? palette.paper : shade)
  })
  const isGrassy = /hills|forest/.test(place) && reading.season !== 'winter'
  const grass = many(
    isGrassy ? width / 12 : 0,
    (at) => svg`<path d="M-6 0Q-4-.5 0-1Q3-.5 6 0Z" fill="${palette.front}"
      transform="translate(${at * 12} ${height}) skewX(${between(random, -20, 20)}) scale(1 ${between(random, 35, 90)})"/>`,
  )
  const gleams = many(
    place === 'city' ? 60 : 0,
    (
      at,
    ) => svg`<path d="M0 0h1v1h-1z" fill="${at % 2 ? palette.accent : WARM}" fill-opacity="${palette.dark * 0.6}"
      transform="translate(${random() * width} ${below(stage, between(random, 0.4, 0.8))}) scale(${between(random, 4, 14)} ${between(random, 30, 160)})"/>`,
  )
  const back = { space: planet, underwater: water, city: houses }[place as 'space']?.(stage) ?? ''
  return [PLANTS + back + far + middle, near + grass + gleams]
}

/** Draws a planet with a ring, and a nebula. */
const planet = ({ palette, width, horizon, light, reading }: Stage) =>
  svg`${glow('nebula', width - light.x, horizon * 0.6, 600, palette.accent)}
    <g transform="translate(${light.x} ${light.y + 80}) scale(15) translate(-16 -16)">
    ${repaint(EMOJI.figures['ringed-planet']?.body ?? '', reading.tints[0])}</g>`

/** Draws deep water, with rays of light and bubbles. */
function water(stage: Stage) {
  const { width, height, light, random, palette } = stage
  const { low, zenith, near, front } = palette
  const rays = many(
    7,
    (
      at,
    ) => svg`<path d="M0 0h.5l.5 1h-1.4Z" fill="url(#ray)" transform="translate(${width * ((at + random()) / 7)} -20)
      skewX(${light.side * -12}) scale(${between(random, 60, 190)} ${height + 40})"/>`,
  )
  return svg`${floor(stage, 'deep', -20, mix(low, near, 0.25), mix(zenith, near, 0.55), mix(near, front, 0.55))}
    ${fade('ray', '#fffbdc44', '#fffbdc00')}${rays}${strew(stage, 34, [3, 15], '<circle r="1" fill="#fff" fill-opacity=".2"/>')}`
}

/** Defines three houses, whose windows are lit after dark. */
function houses({ palette, random }: Stage) {
  const windows = many(
    27,
    (at) => svg`<path d="M${(at % 3) * 0.17 - 0.23} ${Math.floor(at / 3) * 0.1 - 0.93}h.12v.06h-.12Z"
      fill="${random() < 0.45 ? WARM : palette.front}"/>`,
  )
  return svg`<defs><g id="city0"><path d="M-.3 0v-1h.6v1Z"/>${windows}</g>
    <g id="city1"><path d="M-.22-1.2l.22-.1l.22.1z"/><use href="#city0" transform="scale(-.72 1.2)"/></g>
    <use id="city2" href="#city0" transform="scale(.9 .75)"/></defs>`
}

export function drawSea(stage: Stage): Layers {
  const { height, horizon, palette, scale, light, random, place, reading } = stage
  const { near, front, far, haze, low } = palette
  const wave = (share: number, dark: number) =>
    fillBelow(stage, ridge(random, below(stage, share), 24 * scale), mix(near, front, dark), 0.42)
  const glitter = many(130, (at) => {
    const depth = (at / 130) ** 1.35
    return svg`<rect x="-15" width="30" height="3" rx="2" fill="${palette.light}" fill-opacity=".45"
      transform="translate(${light.x + between(random, -1, 1) * (26 + depth * 250)} ${horizon + 5 + depth * (height - horizon) * 0.9})
      scale(${(0.3 + depth * 3) * between(random, 0.5, 1.4)} ${0.6 + depth * 1.6})"/>`
  })
  const back = svg`${slope(stage, 'shore', ridge(random, horizon + 4, 60 * scale), far, mix(far, haze, 0.2))}
    ${floor(stage, 'water', horizon, mix(haze, near, 0.3), mix(low, near, 0.8), mix(near, front, 0.3), mix(near, front, 0.55))}${glitter}`
  if (place === 'sea') return [back, wave(0.3, 0.05) + wave(0.52, 0.25) + wave(0.86, 0.6)]
  const sand = reading.season === 'winter' ? near : mix('#ecdab2', '#38293a', palette.dark * 1.2)
  const line = ridge(random, below(stage, 0.46), 46 * scale)
  return [back, wave(0.3, 0.05) + slope(stage, 'sand', line, sand, mix(sand, front, 0.35))]
}

/** Draws a room: a table by a window, or a studio with a stand for a thing. */
export function drawRoom(stage: Stage): Layers {
  const { width, height, palette, light, place, hasReferences, reading } = stage
  const { high, low, haze, middle, near, front, paper } = palette
  const isTable = place === 'table'
  const plain = isTable ? mix(low, near, 0.25) : mix('#c4c4c1', palette.accent, 0.35)
  const [top, reach] = [height * TABLE_TOP, Math.min(360, width * 0.36)]
  const wall = svg`<path d="M-20-20h${width + 40}v${height + 40}h${-width - 40}z" fill="${mix(plain, front, palette.dark * 0.6 + 0.1)}"/>
    ${glow('wall', width / 2 + light.side * width * 0.16, height * 0.36, Math.max(width, height) * 0.8, mix(plain, palette.light, 0.5))}`
  const window = svg`${fade('pane', high, haze)}
    <g transform="translate(${width / 2 + light.side * width * 0.26 - reach * 0.55} ${top * 0.1}) scale(${reach * 0.11})">
      <path d="M0 0h10v10H0Z" fill="url(#pane)"/><path d="M0 10v-2q5-3 10-.6v2.6Z" fill="${mix(middle, haze, 0.4)}"/>
      <circle cx="7" cy="2.6" r="1" fill="${palette.light}" fill-opacity=".9"/>
      <path d="M-.2-.2h10.4v10.4H-.2ZM5 0v10M0 5h10" fill="none" stroke="${mix(paper, near, 0.12)}" stroke-width=".33"/></g>`
  const disc = svg`<circle cx="${width / 2}" cy="${height * 0.44}" r="${reach}" fill="${mix(plain, palette.accent, 0.4)}" fill-opacity=".6"/>
    ${floor(stage, 'floor', height * 0.74, mix(plain, palette.light, 0.12), mix(plain, front, 0.5))}`
  const stand = svg`<g transform="translate(${width / 2} ${top}) scale(${reach})"><path d="M-1 0v9h2v-9Z" fill="${mix(plain, front, 0.34)}"/>
    <ellipse rx="1" ry=".2" fill="${mix(plain, palette.light, 0.5)}"/></g>`
  if (isTable)
    return [
      wall + window,
      floor(stage, 'board', top, mix(near, palette.light, 0.3), near, mix(near, front, 0.4)),
    ]
  const isThing = EMOJI.figures[reading.actors[0]?.name ?? '']?.stance === 'thing'
  return [wall + disc, isThing && !hasReferences ? stand : '']
}
