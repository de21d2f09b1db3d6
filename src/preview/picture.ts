// Lays out a frame: the stage, the caption below it, and the references and the card of an unknown subject on it. These
// overlays are opaque pictures that do not move, so a picture and each frame of a film are put together in the same way.
import type { Sharp } from 'sharp'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { drawCaption } from './lettering/caption.js'
import { drawCard } from './lettering/card.js'
import { type Font, loadFont } from './lettering/font.js'
import { drawPrints, previewMark } from './references.js'
import { composeScene, settingFor } from './scenery/scene.js'
import { type Area, centred, type Overlay, rasterize, type Setting, type View } from './scenery/stage.js'
import { imageSize, type Size } from './size.js'

/** Draws one picture. */
export async function renderImage(job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(job.input)
  const setting = settingFor(String(job.input.prompt), job.run?.id)
  const layout = await layOut(setting, size, job.references)
  job.onProgress?.(0.2)
  const stage = await drawStage(layout, { framing: setting.reading.view ?? 'middle', number: 0, way: 0 })
  const picture = stage
    .extend({ bottom: size.height - layout.stageHeight })
    .composite([...layout.overlays])
    .removeAlpha()
    .withExif({ IFD0: { Software: previewMark(layout.stageHeight / size.height) } })
    .png({ compressionLevel: 3 })
  return writeOutput(job, 'picture.png', 'image/png', await picture.toBuffer())
}

export interface Layout {
  readonly setting: Setting
  readonly size: Size
  /** Height of the stage in pixels. The caption is below it. */
  readonly stageHeight: number
  readonly hasReferences: boolean
  /** The caption, the card and the references. */
  readonly overlays: readonly Overlay[]
}

type References = RenderJob['references']

export async function layOut(setting: Setting, size: Size, references: References): Promise<Layout> {
  const { prompt, palette } = setting
  const font = await loadFont(prompt)
  const caption = await drawCaption(font, palette, prompt, size, unitOf(size))
  const stageHeight = caption.top
  const { prints, card } = areasOf({ ...size, height: stageHeight }, setting, references.length)
  const cards = await subjectCard(setting, card, font)
  const overlays = [caption, ...cards, ...(await drawPrints(references, prints, palette, font))]
  return { setting, size, stageHeight, hasReferences: references.length > 0, overlays }
}

/** Draws the card of a subject without a figure. */
export async function subjectCard({ reading, palette }: Setting, area: Area, font: Font) {
  const title = reading.unknownSubject
  return title === undefined ? [] : [centred(await drawCard(area, font, palette, title), area)]
}

/** Pixels of a unit: the shorter side of a frame is 1000 units. */
const unitOf = ({ width, height }: Size): number => Math.min(width, height) / 1000

/** `way`: how many pixels the stage is wider than the frame. `number` is the number of the shot. */
export type StageView = Pick<View, 'framing' | 'number'> & { readonly way: number }

export async function drawStage(layout: Layout, { way, ...shot }: StageView): Promise<Sharp> {
  const { setting, size, stageHeight, hasReferences } = layout
  const unit = unitOf(size)
  const stage = { width: size.width + way, height: stageHeight }
  const units = { width: stage.width / unit, height: stage.height / unit }
  const drawing = composeScene(setting, units, { ...shot, hasReferences, margin: way / unit })
  const picture = await rasterize(stage, units, drawing)
  return setting.reading.isMonochrome ? picture.modulate({ saturation: 0 }) : picture
}

/** Returns the parts of the stage for the references and for the card: side by side, or one above the other. */
function areasOf({ width, height }: Size, { actors, reading, light }: Setting, count: number) {
  const part = (x: number, y: number, across: number, down: number): Area => ({
    left: width * x,
    top: height * y,
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
  const isRight = light.side > 0
  const prints = part(isRight ? 0.97 - across : 0.03, isMany ? 0.06 : 0.1, across, isMany ? 0.82 : 0.56)
  return { prints, card: part(isRight ? 0.04 : across + 0.07, 0.14, 0.89 - across, 0.66) }
}
