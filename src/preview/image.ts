// Draws one picture.
import { raceAbort } from '../host/abort.js'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { drawBand, drawStage, type Layout, layOut } from './picture.js'
import { previewMark } from './references.js'
import { type ImageRequest, imageSize } from './render-request.js'
import { settingFor } from './scenery/scene.js'

const NAME = 'picture.png'

export async function renderImage(request: ImageRequest, job: RenderJob): Promise<RenderedFile> {
  const setting = settingFor(request.prompt, job.run?.id)
  const layout = await raceAbort(layOut(setting, imageSize(request), job.references), job.signal)
  job.onProgress?.(0.2)
  const png = await raceAbort(draw(layout), job.signal)
  job.onProgress?.(0.95)
  await writeOutput(job.folder, NAME, [png], job.signal)
  job.onProgress?.(1)
  return { name: NAME, contentType: 'image/png' }
}

async function draw(layout: Layout): Promise<Buffer> {
  const { setting, size, stageHeight, overlays } = layout
  const stage = await drawStage(layout, { framing: setting.reading.view ?? 'middle', number: 0, way: 0 })
  return stage
    .extend({ bottom: size.height - stageHeight })
    .composite([await drawBand(layout), ...overlays])
    .removeAlpha()
    .withExif({ IFD0: { Software: previewMark(stageHeight / size.height) } })
    .png({ compressionLevel: 3 })
    .toBuffer()
}
