// The preview renderer: what `rushes` draws when no generative model stands behind the local service. It sets a
// storyboard frame from the words of the prompt (its colours, its hour, its place, its subject), puts the reference
// images into it, letters the prompt beneath, and says on every picture that it is a preview. The files are real:
// the exact size that was asked for, PNG, or H.264 in MP4 that begins to play before it has arrived whole.
//
// The same run and input give the same bytes for one version of `rushes` on one kind of machine; the letters and the
// drawing come from packages, never from the system's fonts.
//
// Limits: it understands a few hundred English words and takes the rest as a seed; its letters are Latin, Greek and
// Cyrillic (lettering/drawable.ts says what becomes of the others).
import type { Engine } from '../service/engines/engine.js'
import { imageRequest, videoRequest } from './render-request.js'

export interface PreviewOptions {
  /** Folders in which an ffmpeg is looked for, as in PATH, which is the default; '' for none. */
  readonly searchPath?: string | undefined
}

export function createPreviewEngine({ searchPath = process.env.PATH }: PreviewOptions = {}): Engine {
  return {
    async render(job) {
      job.signal.throwIfAborted()
      // The two halves load sharp, the font reader and the encoder: nobody pays for them before the first picture.
      if (job.kind === 'image') {
        const { renderImage } = await import('./image.js')
        return [await renderImage(imageRequest(job.input), job)]
      }
      const { renderVideo } = await import('./video/film.js')
      return [await renderVideo(videoRequest(job.input), job, searchPath)]
    },
  }
}
