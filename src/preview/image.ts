// Draws one picture: the scene with the references beside the subject, and the caption.
import { raceAbort } from '../host/abort.js'
import type { RenderedFile, RenderJob } from '../service/engines/engine.js'
import { writeOutput } from './files.js'
import { drawCaption, loadLettering } from './lettering/caption.js'
import { drawShot } from './picture.js'
import { openReferences, previewMark } from './references.js'
import { type ImageRequest, imageSize } from './render-request.js'
import { settingFor } from './scenery/scene.js'

const NAME = 'picture.png'
const FRAMINGS = { close: 'close', wide: 'wide', aerial: 'wide', none: 'middle' } as const

export async function renderImage(request: ImageRequest, job: RenderJob): Promise<RenderedFile> {
  const size = imageSize(request)
  const { prompt } = request
  const setting = settingFor(prompt, job.run?.id, job.references.length > 0)
  const framing = FRAMINGS[setting.reading.view ?? 'none']
  const lettering = await loadLettering()
  const references = await raceAbort(openReferences(job.references, size), job.signal)
  job.onProgress?.(0.2)

  let mark = ''
  const draw = async (): Promise<Buffer> => {
    const shot = { size, framing, number: 0, references, cut: { x: 0, y: 0 } }
    const picture = await drawShot(setting, lettering, shot, (scene) => {
      const { drawing, clear } = drawCaption(scene, lettering, setting.palette, prompt)
      mark = previewMark(clear)
      return drawing
    })
    return picture
      .removeAlpha()
      .withExif({ IFD0: { Software: mark } })
      .png({ compressionLevel: 3 })
      .toBuffer()
  }
  const png = await raceAbort(draw(), job.signal)
  job.onProgress?.(0.95)
  await writeOutput(job.folder, NAME, [png], job.signal)
  job.onProgress?.(1)
  return { name: NAME, contentType: 'image/png' }
}
