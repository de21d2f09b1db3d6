// The preview renderer is the built-in engine of the local service. It draws a storyboard frame from words of the
// prompt (colours, time of day, place, subject), adds the reference images beside it and the prompt as a caption, and marks every
// picture as a preview. The outputs are valid media files: PNG in the requested size, or H.264 in a fast-start MP4.
//
// The same run and input give the same bytes with one version of `rushes` on one platform. Fonts and figures come from
// packages, not from the system.
//
// A job without a prompt, which no run is, converts its reference image to PNG for the server of another engine.
//
// Limits: the renderer knows about 1,500 English nouns, and writes any other subject on a card. Captions are in Latin,
// Greek and Cyrillic script; lettering/font.ts describes the other scripts.
import type { Engine } from '../service/engines/engine.js'

export const createPreviewEngine = (): Engine => ({
  async render(job) {
    job.signal.throwIfAborted()
    // Imported with the first job, because sharp, the font parser and the encoder take time to load.
    if (job.input.prompt === undefined) return [await (await import('./thumbnail.js')).convertReference(job)]
    if (job.kind === 'image') return [await (await import('./picture.js')).renderImage(job)]
    return [await (await import('./video/film.js')).renderVideo(job)]
  },
})
