// Draws the card of a subject without a figure: the subject in letters, and below it what the prompt says of place and
// hour. The look depends on the words, so that cards of different prompts look different.
import { hex, mix } from '../colour.js'
import { drawableText, type Font, wrapText } from '../lettering/font.js'
import { randomFrom } from '../random.js'
import { even } from '../render-request.js'
import type { Setting } from './scene.js'
import { type Area, box, type Overlay, path, pixels, stageSvg } from './stage.js'

const LETTER_SIZES = [150, 132, 116, 102, 90, 78, 68, 60, 52, 44, 38]
const MAX_LINES = 4
const LINE_HEIGHT = 1.16
const FACT_SIZE = 38
const INSET = 70
const MAX_WIDTH = 1200

/** Draws a card in the middle of `area`, in pixels. Returns nothing if the subject is known. */
export async function drawSubjectCard(
  area: Area,
  unit: number,
  font: Font,
  { reading, seed, palette }: Setting,
): Promise<readonly Overlay[]> {
  const { unknownSubject, place, hour, season, weather, skyEvent } = reading
  if (unknownSubject === undefined) return []
  const random = randomFrom(`${seed}\ncard`)
  const [isDark, isBandLeft] = [random() < 0.4, random() < 0.5]
  const paper = mix(isDark ? palette.ink : palette.paper, palette.accent, isDark ? 0.22 : 0.16)
  const ink = hex(isDark ? palette.paper : palette.ink)
  const facts = [place === 'table' ? 'room' : place, hour === 'grey' ? '' : hour, season, weather, skyEvent]
    .filter(Boolean)
    .join('  ·  ')
  const footHeight = facts === '' ? 0 : FACT_SIZE * 2
  const room = Math.min(area.width / unit, MAX_WIDTH) - 2 * INSET
  const subject = drawableText(unknownSubject, font.has) || '…'
  const { lines, size } = fitLines(subject, room, area.height / unit - 2 * INSET - footHeight, font)
  const factSize = Math.min(FACT_SIZE, (FACT_SIZE * room) / font.width(facts, FACT_SIZE))
  const widths = [...lines.map((line) => font.width(line, size)), font.width(facts, factSize), room * 0.45]
  const units = {
    width: Math.min(room, Math.max(...widths)) + 2 * INSET,
    height: lines.length * size * LINE_HEIGHT + footHeight + 2 * INSET - size * 0.16,
  }
  const letters = lines.map((line, at) =>
    font.outline(line, INSET, INSET + size * (0.86 + at * LINE_HEIGHT), size),
  )
  const drawing =
    box([0, 0, units.width, units.height], hex(paper)) +
    box([isBandLeft ? 0 : units.width - 20, 0, 20, units.height], hex(palette.accent)) +
    path(letters.join(''), ink) +
    path(font.outline(facts, INSET, units.height - INSET * 0.78, factSize), ink, 0.75)
  const card = { width: even(units.width * unit), height: even(units.height * unit) }
  const sharp = await pixels()
  const input = await sharp(stageSvg(card, units, drawing))
    .png()
    .toBuffer()
  const left = even(area.x + (area.width - card.width) / 2)
  return [{ input, left, top: even(area.y + (area.height - card.height) / 2), ...card }]
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
