// Lays out a frame: the stage, the caption below it, and the references and the card of an unknown subject on it. These
// overlays are opaque pictures that do not move, so a picture and each frame of a film are put together in the same way.
import type { Sharp } from 'sharp'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { pixels, writeOutput } from './files.js'
import { drawCaption, drawCard, lineOf, type Overlay } from './lettering.js'
import { drawPrints, previewMark } from './references.js'
import { composeScene, settingFor } from './scene.js'
import { type Area, centred, imageSize, type Size } from './size.js'
import type { Setting, Stage } from './stage.js'

/** Draws one picture. */
export async function renderImage(job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(job.input)
  const layout = await layOut(job, size)
  job.onProgress?.(0.2)
  const { setting, stageHeight, overlays, title } = layout
  const stage = await drawStage(layout, { framing: setting.reading.view ?? 'middle', number: 0, way: 0 })
  const picture = stage
    .extend({ bottom: size.height - stageHeight })
    .composite([...overlays])
    .removeAlpha()
    .withExif({ IFD0: { Software: previewMark(stageHeight / size.height), ImageDescription: title } })
    .png({ compressionLevel: 3 })
  return writeOutput(job, 'picture.png', 'image/png', await picture.toBuffer())
}

export interface Layout {
  readonly setting: Setting
  readonly size: Size
  /** The first words of the prompt, for the metadata of the file. */
  readonly title: string
  /** Height of the stage in pixels. The caption is below it. */
  readonly stageHeight: number
  readonly hasReferences: boolean
  /** The caption, the card and the references. */
  readonly overlays: readonly Overlay[]
}

export async function layOut(
  { input, references }: Pick<RenderJob, 'input' | 'references'>,
  size: Size,
): Promise<Layout> {
  const prompt = String(input.prompt)
  const hasReferences = references.length > 0
  const setting = settingFor(prompt, input.seed, hasReferences)
  const { palette, light } = setting
  const { actors, card } = setting.reading
  const caption = await drawCaption(palette, prompt, size, unitOf(size))
  const stageHeight = size.height - caption.height
  const part = (left: number, top: number, width: number, height: number): Area => ({
    left: size.width * left,
    top: stageHeight * top,
    width: size.width * width,
    height: stageHeight * height,
  })
  // The references and the card are side by side, or one above the other.
  const [isTall, isLeft] = [size.height > size.width, light.side < 0]
  const whole = part(0.12, 0.14, 0.76, 0.66)
  const beside = isTall ? part(0.06, 0.46, 0.88, 0.4) : part(isLeft ? 0.48 : 0.04, 0.14, 0.48, 0.66)
  const prints = isTall ? part(0.06, 0.03, 0.88, 0.34) : part(isLeft ? 0.03 : 0.55, 0.08, 0.42, 0.66)
  const room = hasReferences ? beside : whole
  return {
    setting,
    size,
    title: lineOf(prompt).slice(0, 80) || 'no words',
    stageHeight,
    hasReferences,
    overlays: [
      { ...caption, left: 0, top: stageHeight },
      ...(card ? [centred(await drawCard(room, palette, card.title, card.name), room)] : []),
      ...(await drawPrints(references, (card ?? actors[0]) ? prints : whole, palette)),
    ],
  }
}

/** Pixels of a unit: the shorter side of a frame is 1000 units. */
const unitOf = ({ width, height }: Size): number => Math.min(width, height) / 1000

/** `way`: how many pixels the stage is wider than the frame. `number` is the number of the shot. */
export interface StageView extends Pick<Stage, 'framing'> {
  readonly number: number
  readonly way: number
}

export async function drawStage(
  { setting, size, stageHeight, hasReferences }: Layout,
  { way, ...shot }: StageView,
): Promise<Sharp> {
  const unit = unitOf(size)
  const width = size.width + way
  const units = { width: width / unit, height: stageHeight / unit }
  const drawing = composeScene(setting, units, { ...shot, hasReferences, margin: way / unit })
  const document = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${stageHeight}" preserveAspectRatio="none"
    viewBox="0 0 ${units.width} ${units.height}">${drawing}</svg>`
  const stage = (await pixels())(Buffer.from(document)).removeAlpha()
  return setting.reading.isMonochrome ? stage.modulate({ saturation: 0 }) : stage
}
