// The preview renderer is the built-in engine of the local service. It draws a storyboard frame from words of the
// prompt (colours, time of day, place, subject), adds the reference images beside it and the prompt as a caption, and marks every
// picture as a preview. The outputs are valid media files: PNG in the requested size, or H.264 in a fast-start MP4.
//
// The same prompt and seed give the same bytes with one version of `rushes` on one platform.
//
// Limits: the renderer knows about 1,500 English words of figures, and writes any other subject on a card. Captions are in
// Latin, Greek and Cyrillic script, and in others if the machine has a font; see overlays.ts.
import type { Engine } from '../service/engines/engine.js'

export const createPreviewEngine = (): Engine => ({
  async render(job) {
    job.signal.throwIfAborted()
    // Imported with the first job, because sharp and the encoder take time to load.
    if (job.kind === 'image') return [await (await import('./picture.js')).renderImage(job)]
    return [await (await import('./film.js')).renderVideo(job)]
  },
})
