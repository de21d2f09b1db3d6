// The contract between the local service and what makes its outputs: the preview renderer (`src/preview`) or a command of
// the user's (`--engine`). The service fetches references, enforces timeouts and stores the files; an engine turns one
// accepted input into files in one folder and knows nothing of API keys or HTTP.
import type { Kind } from '../../protocol/models.js'

/** One accepted run, as an engine sees it. */
export interface RenderJob {
  readonly kind: Kind
  /** For an engine that logs it or passes it on, and for outputs that differ between runs of one input. */
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
  /** Called now and then with the progress, from 0 to 1, which never decreases. */
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
   * Makes the outputs of one run, in the order in which they are listed.
   * Rejects with the signal's reason when aborted, and with any other error when the run has failed.
   */
  render(job: RenderJob): Promise<readonly RenderedFile[]>
  /** How long one job may take, references included; the service's own limit if undefined. Infinity means no limit. */
  limitMs?(kind: Kind): number | undefined
  /** Ends what is kept between jobs. */
  close?(): Promise<void>
}
