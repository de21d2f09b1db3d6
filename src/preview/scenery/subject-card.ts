// Draws the storyboard card of a subject without a figure: a frame with the subject as text, and below it the place,
// the hour and the colours of the prompt. Shape and tint of the card depend on the words, so that cards of different
// prompts look different.
import { colour, hex, mix } from '../colour.js'
import { drawableText, type Font, wrapText } from '../lettering/font.js'
import { between, pick, type Random, randomFrom } from '../random.js'
import type { Reading } from '../read-prompt.js'
import type { Size } from '../render-request.js'
import { smoothRidge } from './land-shapes.js'
import type { Setting } from './scene-setting.js'
import { box, circle, fade, ground, type Land, path, type Stage, svg } from './stage.js'

const LETTER_SIZES = [150, 132, 116, 102, 90, 78, 68, 60, 52]
const MAX_LINES = 4
const LINE_HEIGHT = 1.16
const FACT_SIZE = 38
/**
 * Area of the card, as shares of the frame: below the mark and above the caption, also when the camera of a film crops
 * the frame.
 */
const ROOM = { width: 0.66, top: 0.14, bottom: 0.66 } as const
const MAX_WIDTH = 1200

/** Returns the drawing in stage units, or '' if the subject is known. */
export function drawSubjectCard(stage: Size, font: Font, { reading, seed, palette }: Setting): string {
  const { unknownSubject } = reading
  if (unknownSubject === undefined) return ''
  const random = randomFrom(`${seed}\ncard`)
  const side = pick(random, ['left', 'top', 'right', 'bottom'] as const)
  const isDark = random() < 0.4
  const isCentred = random() < 0.5
  const radius = pick(random, [0, 18, 44] as const)
  const paper = mix(isDark ? palette.ink : palette.paper, palette.accent, isDark ? 0.22 : 0.16)
  const ink = hex(isDark ? palette.paper : palette.ink)
  const accent = hex(mix(palette.accent, isDark ? palette.paper : palette.ink, 0.12))

  const inset = 74
  const room = Math.min(stage.width * ROOM.width, MAX_WIDTH) - 2 * inset
  const facts = drawableText(factsOf(reading), font.has)
  const swatches = reading.tints.slice(0, 6)
  const footHeight = facts === '' && swatches.length === 0 ? 0 : FACT_SIZE * 2.1
  const tallest = stage.height * (ROOM.bottom - ROOM.top) - 2 * inset - footHeight
  const subject = drawableText(unknownSubject, font.has) || '…'
  const { lines, size } = fitLines(subject, room, tallest, font)
  const widths = lines.map((line) => font.width(line, size))
  const swatchWidth = swatches.length * 54
  const footWidth = font.width(facts, FACT_SIZE) + (facts === '' || swatchWidth === 0 ? 0 : 30) + swatchWidth
  const inner = Math.min(room, Math.max(...widths, footWidth, room * 0.45))
  const width = inner + 2 * inset
  const height = lines.length * size * LINE_HEIGHT + footHeight + 2 * inset - size * 0.16
  const left = (stage.width - width) / 2
  const top = (stage.height * (ROOM.top + ROOM.bottom) - height) / 2
  const startOf = (each: number) => (isCentred ? (stage.width - each) / 2 : left + inset)

  const letters = lines.map((line, index) =>
    font.outline(line, startOf(widths[index] ?? 0), top + inset + size * (0.86 + index * LINE_HEIGHT), size),
  )
  const baseline = top + height - inset * 0.78
  const factSize = Math.min(FACT_SIZE, (FACT_SIZE * inner) / footWidth)
  const foot = startOf(Math.min(inner, footWidth))
  const afterFacts = foot + font.width(facts, factSize) + (facts === '' ? 0 : 30)
  const dots = swatches.map(({ hue, strength, lightness = 0.66 }, index) => {
    const shade = hex(colour(lightness, 0.16 * strength, hue))
    const x = afterFacts + 22 + index * 54
    return circle(x, baseline - 11, 22, ink, 0.35) + circle(x, baseline - 11, 20, shade)
  })
  const band = 20
  const bands = {
    left: box(left, top + radius, band, height - 2 * radius, accent),
    right: box(left + width - band, top + radius, band, height - 2 * radius, accent),
    top: box(left + radius, top, width - 2 * radius, band, accent),
    bottom: box(left + radius, top + height - band, width - 2 * radius, band, accent),
  }
  return (
    svg`<rect x="${left + 10}" y="${top + 16}" width="${width}" height="${height}" ` +
    `rx="${radius}" fill="${hex(palette.ink)}" fill-opacity=".3"/>` +
    box(left, top, width, height, hex(paper), radius) +
    bands[side] +
    svg`<rect x="${left + 32}" y="${top + 32}" width="${width - 64}" height="${height - 64}" ` +
    `rx="${Math.max(0, radius - 14)}" fill="none" stroke="${ink}" stroke-opacity=".3" stroke-width="3"/>` +
    cropMarks(left, top, width, height, hex(palette.paper)) +
    path(letters.join(''), ink) +
    path(font.outline(facts, foot, baseline, factSize), ink, 0.75) +
    dots.join('')
  )
}

/** Finds the largest text size at which every word fits. A subject that is too long ends in an ellipsis. */
function fitLines(
  text: string,
  room: number,
  height: number,
  font: Font,
): { readonly lines: readonly string[]; readonly size: number } {
  const longest = text.split(' ').reduce((one, other) => (other.length > one.length ? other : one), '')
  const wrapAt = (size: number) => {
    const most = Math.max(1, Math.min(MAX_LINES, Math.floor(height / (size * LINE_HEIGHT))))
    return wrapText(text, room, most, (each) => font.width(each, size))
  }
  const fits = (size: number) => font.width(longest, size) <= room && wrapAt(size).join(' ') === text
  const size = LETTER_SIZES.find(fits) ?? LETTER_SIZES.at(-1) ?? FACT_SIZE
  return { lines: wrapAt(size), size }
}

function factsOf({ place, isBeach, hour, season, weather, skyEvent }: Reading): string {
  const where = place === 'abstract' || place === 'studio' ? undefined : isBeach ? 'beach' : place
  return [where, hour === 'grey' ? undefined : hour, season, weather, skyEvent].filter(Boolean).join('  ·  ')
}

/** Draws the corners of a storyboard frame around the card. */
function cropMarks(left: number, top: number, width: number, height: number, shade: string): string {
  const gap = 20
  const long = 46
  const corners = [
    [left - gap, top - gap, 1, 1],
    [left + width + gap, top - gap, -1, 1],
    [left - gap, top + height + gap, 1, -1],
    [left + width + gap, top + height + gap, -1, -1],
  ] as const
  const data = corners.map(([x, y, across, down]) => svg`M${x} ${y + down * long}V${y}H${x + across * long}`)
  return `<path d="${data.join('')}" fill="none" stroke="${shade}" stroke-opacity=".8" stroke-width="5"/>`
}

const BACKDROPS = ['hills', 'discs', 'bands', 'arcs', 'steps'] as const

/** Draws the plain background of a card for prompts without a place. */
export function backdrop(stage: Stage, random: Random): Land {
  const { width, height, palette } = stage
  const shade = (amount: number) => hex(mix(palette.sky[1], palette.accent, amount))
  const air =
    fade('backdrop', 0, height, [
      [0, hex(mix(palette.sky[0], palette.accent, 0.18))],
      [1, hex(mix(palette.sky[2], palette.accent, 0.3))],
    ]) + box(-20, -20, width + 40, height + 40, 'url(#backdrop)')
  // The kind of background is the same in all shots of a film.
  const kind = BACKDROPS[Math.floor(palette.accent.hue / 72)]
  const [x, y] = [width * between(random, 0.1, 0.9), height * between(random, 0.15, 0.85)]
  const lean = random() < 0.5 ? -1 : 1
  const layer = (index: number): string => {
    const fill = shade(0.28 + index * 0.16)
    if (kind === 'hills')
      return ground(smoothRidge(random, width, height * (0.46 + index * 0.2), 120), height + 60, fill)
    if (kind === 'discs') return circle(x + lean * index * width * 0.18, y, 520 - index * 150, fill, 0.75)
    if (kind === 'arcs')
      return circle(lean > 0 ? 0 : width, height, Math.max(width, height) * (0.95 - index * 0.25), fill, 0.8)
    if (kind === 'steps') return box(-20, height * (0.42 + index * 0.2), width + 40, height, fill)
    const at = width * (0.16 + index * 0.3)
    return path(svg`M${at} -40h${width * 0.16}l${lean * -420} ${height + 80}h${-width * 0.16}Z`, fill, 0.7)
  }
  return { far: air + layer(0), middle: layer(1), ground: layer(2), front: '' }
}
