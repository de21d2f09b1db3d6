// Lays out a frame: the stage, the caption below it, and the references and the card of an unknown subject on it. These
// overlays are opaque pictures that do not move, so a picture and each frame of a film are put together in the same way.
import type { Sharp } from 'sharp'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { pixels, writeOutput } from './files.js'
import { drawCaption, drawCard, drawReferences, type Overlay } from './overlays.js'
import { composeScene, settingFor } from './scene.js'
import { type Area, centred, imageSize, type Size } from './size.js'
import type { Setting, View } from './stage.js'

/** Draws one picture. */
export async function renderImage(job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(job.input)
  const layout = await layOut(job, size)
  const { setting, stageHeight, overlays } = layout
  const stage = await drawStage(layout, { framing: setting.reading.view ?? 'middle', number: 0 })
  const picture = stage
    .extend({ bottom: size.height - stageHeight })
    .composite([...overlays])
    .removeAlpha()
    .png({ compressionLevel: 3 })
  return writeOutput(job, 'picture.png', 'image/png', await picture.toBuffer())
}

export interface Layout {
  readonly setting: Setting
  readonly size: Size
  /** Height of the stage in pixels. The caption is below it. */
  readonly stageHeight: number
  /** The caption, the card and the references. */
  readonly overlays: readonly Overlay[]
}

export async function layOut(
  { input, references }: Pick<RenderJob, 'input' | 'references'>,
  size: Size,
): Promise<Layout> {
  const prompt = String(input.prompt)
  const setting = settingFor(prompt, input.seed, references.length > 0)
  const { palette, reading, hasReferences } = setting
  const caption = await drawCaption(palette, prompt, size, unitOf(size))
  const stageHeight = size.height - caption.height
  const part = (left: number, top: number, width: number, height: number): Area => ({
    left: size.width * left,
    top: stageHeight * top,
    width: size.width * width,
    height: stageHeight * height,
  })
  // The references are beside the subject, or above it.
  const isTall = size.height > size.width
  const subject = isTall ? part(0.06, 0.46, 0.88, 0.4) : part(0.04, 0.14, 0.48, 0.66)
  const beside = isTall ? part(0.06, 0.03, 0.88, 0.34) : part(0.55, 0.08, 0.42, 0.66)
  const room = hasReferences ? subject : part(0.12, 0.14, 0.76, 0.66)
  return {
    setting,
    size,
    stageHeight,
    overlays: [
      { ...caption, left: 0, top: stageHeight },
      ...(reading.card ? [centred(await drawCard(room, palette, reading.card), room)] : []),
      ...(await drawReferences(references, beside, palette)),
    ],
  }
}

/** Pixels of a unit: the shorter side of a frame is 1000 units. */
const unitOf = ({ width, height }: Size): number => Math.min(width, height) / 1000

/** Draws the stage, which is `way` pixels wider than the frame. */
export async function drawStage({ setting, size, stageHeight }: Layout, view: View, way = 0): Promise<Sharp> {
  const unit = unitOf(size)
  const width = size.width + way
  const units = { width: width / unit, height: stageHeight / unit }
  const drawing = composeScene(setting, units, view)
  const document = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${stageHeight}" preserveAspectRatio="none"
    viewBox="0 0 ${units.width} ${units.height}">${drawing}</svg>`
  return (await pixels())(Buffer.from(document)).removeAlpha()
}
