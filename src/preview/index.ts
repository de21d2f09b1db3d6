// The preview renderer, the local service's built-in engine. It draws a storyboard frame from the words of the prompt
// (colours, time of day, place, subject), adds the reference images, writes the prompt beneath, and marks every picture as
// a preview. The files are real: PNG of the requested size, or H.264 in a fast-start MP4.
//
// The same run and input give the same bytes for one version of `rushes` on one kind of machine; the letters and the
// drawing come from packages, never from the system's fonts.
//
// Limits: it knows some thousand English words, and letters any other subject on a card; captions are in Latin, Greek and
// Cyrillic (lettering/font.ts names the other scripts).
import type { Engine } from '../service/engines/engine.js'
import { imageRequest, videoRequest } from './render-request.js'

export interface PreviewOptions {
  /** The folders to find ffmpeg in, as in PATH, which is the default; '' to use none. */
  readonly searchPath?: string | undefined
}

export function createPreviewEngine({ searchPath = process.env.PATH }: PreviewOptions = {}): Engine {
  return {
    async render(job) {
      job.signal.throwIfAborted()
      // Loaded with the first job: sharp, the font reader and the encoder take time.
      if (job.kind === 'image') {
        const { renderImage } = await import('./image.js')
        return [await renderImage(imageRequest(job.input), job)]
      }
      const { renderVideo } = await import('./video/film.js')
      return [await renderVideo(videoRequest(job.input), job, searchPath)]
    },
  }
}
