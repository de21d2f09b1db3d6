// Draws one picture.
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { drawBand, drawStage, type Layout, layOut } from './picture.js'
import { previewMark } from './references.js'
import { type ImageRequest, imageSize } from './render-request.js'
import { settingFor } from './scenery/scene.js'

export async function renderImage(request: ImageRequest, job: RenderJob): Promise<RenderedFile> {
  const setting = settingFor(request.prompt, job.run?.id)
  const layout = await layOut(setting, imageSize(request), job.references)
  job.onProgress?.(0.2)
  return writeOutput(job, 'picture.png', 'image/png', await draw(layout))
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
