// Lays out a frame: the stage, the caption below it, and the references and the card of an unknown subject on it. These
// overlays are opaque pictures that do not move, so a picture and each frame of a film are put together in the same way.
import type { Sharp } from 'sharp'
import { mix } from './colour.js'
import { drawCaption } from './lettering/caption.js'
import { drawCard } from './lettering/card.js'
import { type Font, loadFont } from './lettering/font.js'
import { randomFrom } from './random.js'
import { drawPrints } from './references.js'
import { even, type Size } from './render-request.js'
import { composeScene, type Setting } from './scenery/scene.js'
import { type Area, type Overlay, pixels, stageSvg, type View } from './scenery/stage.js'

export interface Layout {
  readonly setting: Setting
  readonly font: Font
  readonly size: Size
  /** Height of the stage in pixels. The caption is below it. */
  readonly stageHeight: number
  readonly hasReferences: boolean
  /** The references and the card. */
  readonly overlays: readonly Overlay[]
}

export async function layOut(
  setting: Setting,
  size: Size,
  references: readonly (string | undefined)[],
): Promise<Layout> {
  const font = await loadFont(setting.prompt)
  const caption = captionOf(setting, font, size, '')
  const stageHeight = size.height - even(caption.height * unitOf(size))
  const { prints, card } = areasOf({ ...size, height: stageHeight }, setting, references.length)
  const overlays = [
    ...(await subjectCard(setting, card, font)),
    ...(await drawPrints(references, prints, setting.palette, font)),
  ]
  return { setting, font, size, stageHeight, hasReferences: references.length > 0, overlays }
}

/** Draws the card of a subject without a figure. Its look depends on the words, so that cards of prompts differ. */
export async function subjectCard(
  { reading, seed, palette }: Setting,
  area: Area,
  font: Font,
): Promise<readonly Overlay[]> {
  const { unknownSubject, place, hour, season, weather, skyEvent } = reading
  if (unknownSubject === undefined) return []
  const random = randomFrom(`${seed}\ncard`)
  const [isDark, isBandLeft] = [random() < 0.4, random() < 0.5]
  const { ink, paper, accent } = palette
  const facts = [place === 'table' ? 'room' : place, hour === 'grey' ? '' : hour, season, weather, skyEvent]
  const print = await drawCard(area, font, {
    title: unknownSubject,
    facts: facts.filter(Boolean).join('  ·  '),
    paper: mix(isDark ? ink : paper, accent, isDark ? 0.22 : 0.16),
    ink: isDark ? paper : ink,
    accent,
    isBandLeft,
  })
  const left = even(area.x + (area.width - print.width) / 2)
  return [{ ...print, left, top: even(area.y + (area.height - print.height) / 2) }]
}

/** Pixels of a unit: the shorter side of a frame is 1000 units. */
const unitOf = ({ width, height }: Size): number => Math.min(width, height) / 1000

const captionOf = ({ palette, prompt }: Setting, font: Font, size: Size, shot: string) =>
  drawCaption(font, palette, prompt, size.width / unitOf(size), size.width < size.height ? 5 : 3, shot)

/** Draws the caption below the stage. `shot` is the number of the shot, such as `2 / 3`. */
export async function drawBand({ setting, font, size, stageHeight }: Layout, shot = ''): Promise<Overlay> {
  const sharp = await pixels()
  const { drawing } = captionOf(setting, font, size, shot)
  const band = { width: size.width, height: size.height - stageHeight }
  const units = { width: band.width / unitOf(size), height: band.height / unitOf(size) }
  const input = await sharp(stageSvg(band, units, drawing))
    .png()
    .toBuffer()
  return { input, left: 0, top: stageHeight, ...band }
}

/** `way`: how many pixels the stage is wider than the frame. `number` is the number of the shot. */
export interface StageView {
  readonly framing: View['framing']
  readonly number: number
  readonly way: number
}

export async function drawStage(layout: Layout, { framing, number, way }: StageView): Promise<Sharp> {
  const { setting, size, stageHeight, hasReferences } = layout
  const sharp = await pixels()
  const unit = unitOf(size)
  const stage = { width: size.width + way, height: stageHeight }
  const units = { width: stage.width / unit, height: stage.height / unit }
  const drawing = composeScene(setting, units, number, { framing, hasReferences, margin: way / unit })
  const picture = sharp(stageSvg(stage, units, drawing)).removeAlpha()
  return setting.reading.isMonochrome ? picture.modulate({ saturation: 0 }) : picture
}

/** Returns the parts of the stage for the references and for the card: side by side, or one above the other. */
function areasOf({ width, height }: Size, { actors, reading, light }: Setting, count: number) {
  const part = (x: number, y: number, across: number, down: number): Area => ({
    x: width * x,
    y: height * y,
    width: width * across,
    height: height * down,
  })
  const hasSubject = actors.length > 0 || reading.unknownSubject !== undefined
  const whole = part(0.12, 0.14, 0.76, 0.66)
  if (count === 0 || !hasSubject) return { prints: whole, card: whole }
  const isMany = count > 3
  if (height > width)
    return { prints: part(0.06, 0.03, 0.88, isMany ? 0.38 : 0.28), card: part(0.06, 0.46, 0.88, 0.4) }
  const across = isMany ? 0.46 : 0.36
  const isRight = light.x > 0.5
  const prints = part(isRight ? 0.97 - across : 0.03, isMany ? 0.06 : 0.1, across, isMany ? 0.82 : 0.56)
  return { prints, card: part(isRight ? 0.04 : across + 0.07, 0.14, 0.89 - across, 0.66) }
}
