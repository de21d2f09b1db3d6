// Draws the card of a subject without a figure: the subject in letters, and below it what the prompt says of place, hour
// and colours. The look depends on the words, so that cards of different prompts look different.
import { colour, hex, mix } from '../colour.js'
import { drawableText, type Font, wrapText } from '../lettering/font.js'
import { pick, randomFrom } from '../random.js'
import type { Setting } from './scene.js'
import { type Area, box, circle, path, svg } from './stage.js'

const LETTER_SIZES = [150, 132, 116, 102, 90, 78, 68, 60, 52, 44]
const MAX_LINES = 4
const LINE_HEIGHT = 1.16
const FACT_SIZE = 38
const INSET = 74
const MAX_WIDTH = 1200

/** Returns the drawing in the middle of `area`, or '' if the subject is known. */
export function drawSubjectCard(area: Area, font: Font, { reading, seed, palette }: Setting): string {
  if (reading.unknownSubject === undefined) return ''
  const random = randomFrom(`${seed}\ncard`)
  const [isDark, radius, isBandLeft] = [random() < 0.4, pick(random, [0, 18, 44]), random() < 0.5]
  const paper = mix(isDark ? palette.ink : palette.paper, palette.accent, isDark ? 0.22 : 0.16)
  const ink = hex(isDark ? palette.paper : palette.ink)
  const room = Math.min(area.width, MAX_WIDTH) - 2 * INSET
  const { place, hour, season, weather, skyEvent, tints } = reading
  const facts = [place === 'table' ? 'room' : place, hour === 'grey' ? '' : hour, season, weather, skyEvent]
    .filter(Boolean)
    .join('  ·  ')
  const footHeight = facts === '' && tints.length === 0 ? 0 : FACT_SIZE * 2.1
  const subject = drawableText(reading.unknownSubject, font.has) || '…'
  const { lines, size } = fitLines(subject, room, area.height - 2 * INSET - footHeight, font)
  const footWidth = font.width(facts, FACT_SIZE) + 30 + Math.min(6, tints.length) * 54
  const inner = Math.min(
    room,
    Math.max(...lines.map((line) => font.width(line, size)), footWidth, room * 0.45),
  )
  const [width, height] = [
    inner + 2 * INSET,
    lines.length * size * LINE_HEIGHT + footHeight + 2 * INSET - size * 0.16,
  ]
  const [left, top] = [area.x + (area.width - width) / 2, area.y + (area.height - height) / 2]
  const start = left + INSET
  const letters = lines.map((line, at) =>
    font.outline(line, start, top + INSET + size * (0.86 + at * LINE_HEIGHT), size),
  )
  const factSize = Math.min(FACT_SIZE, (FACT_SIZE * inner) / footWidth)
  const baseline = top + height - INSET * 0.78
  const dots = tints.slice(0, 6).map(({ hue, strength, lightness = 0.66 }, at) => {
    const x = start + font.width(facts, factSize) + (facts === '' ? 22 : 52) + at * 54
    const shade = colour(lightness, palette.isMonochrome ? 0 : 0.16 * strength, hue)
    return circle(x, baseline - 11, 22, ink, 0.35) + circle(x, baseline - 11, 20, hex(shade))
  })
  const marks = [-1, 1].flatMap((across) =>
    [-1, 1].map((down) => {
      const [x, y] = [
        left + width / 2 + across * (width / 2 + 20),
        top + height / 2 + down * (height / 2 + 20),
      ]
      return svg`M${x} ${y - down * 46}V${y}H${x - across * 46}`
    }),
  )
  return (
    box([left + 10, top + 16, width, height], hex(palette.ink), radius, 0.3) +
    box([left, top, width, height], hex(paper), radius) +
    box([isBandLeft ? left : left + width - 20, top + radius, 20, height - 2 * radius], hex(palette.accent)) +
    `<path d="${marks.join('')}" fill="none" stroke="${hex(palette.paper)}" stroke-opacity=".8" stroke-width="5"/>` +
    path(letters.join(''), ink) +
    path(font.outline(facts, start, baseline, factSize), ink, 0.75) +
    dots.join('')
  )
}

/** Finds the largest text size at which every word fits. A subject that is too long ends in an ellipsis. */
function fitLines(text: string, room: number, height: number, font: Font) {
  const wrapAt = (size: number) => {
    const most = Math.max(1, Math.min(MAX_LINES, Math.floor(height / (size * LINE_HEIGHT))))
    return wrapText(text, room, most, (each) => font.width(each, size))
  }
  const isWhole = (size: number) =>
    text.split(' ').every((word) => font.width(word, size) <= room) && wrapAt(size).join(' ') === text
  const size = LETTER_SIZES.find(isWhole) ?? FACT_SIZE
  return { lines: wrapAt(size), size }
}
