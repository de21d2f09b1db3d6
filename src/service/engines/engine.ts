// What the local service asks of whatever makes its pictures: the preview renderer beside this file, a command of
// the user's (`--engine`), one day something else. The service fetches references, keeps deadlines and stores the
// files; an engine turns one accepted input into files in one folder and knows nothing of runs, keys or HTTP.
import type { Kind } from '../../protocol/models.js'

/** One accepted run, as an engine sees it. */
export interface RenderJob {
  readonly kind: Kind
  /** What the run is called, for an engine that tells somebody else about it. */
  readonly run?: { readonly id: string; readonly model: string }
  /**
   * The accepted input, valid against the model's schema and with defaults applied (SERVICE.md 2.3, 2.4):
   * image `{prompt, aspect_ratio, quality, image_urls?}`, video `{prompt, aspect_ratio, resolution, duration, image_urls?}`.
   */
  readonly input: Readonly<Record<string, unknown>>
  /** An existing empty folder. The engine leaves its outputs there, each under its final name only when it is whole. */
  readonly folder: string
  /**
   * The reference images as bytes, in the order of `image_urls`, already fetched (or decoded from data: URLs) by the
   * caller. An entry is undefined when it could not be fetched. The bytes are not checked to be a picture.
   */
  readonly references: readonly (Uint8Array | undefined)[]
  /** Once aborted, `render` rejects promptly with the signal's reason and leaves no file behind. */
  readonly signal: AbortSignal
  /** Told now and then how far the work is, from 0 to 1, never going back. */
  onProgress?(fraction: number): void
}

/** One output. */
export interface RenderedFile {
  /** A file name within the job's folder, without a path. */
  readonly name: string
  /** Its media type, `image/png` or `video/mp4`. */
  readonly contentType: string
}

export interface Engine {
  /**
   * Makes the outputs of one run, in the order in which they are to be listed.
   * Rejects with the signal's reason when aborted, and with any other error when the run has failed.
   */
  render(job: RenderJob): Promise<readonly RenderedFile[]>
  /** How long one job may take, references included; without it, the service's own limit. Infinity is for ever. */
  limitMs?(kind: Kind): number | undefined
  /** Ends what it keeps ready between two jobs. */
  close?(): Promise<void>
}
