/**
 * The contract of an engine, which makes the outputs of a run: the preview renderer (src/preview), or a shell command of the
 * user (`--engine`). The service loads references, keeps time limits and stores the files; an engine turns one accepted
 * input into files in one folder, without any knowledge of keys or HTTP.
 */
import type { Kind } from '../../protocol/models.js'

/** One accepted run, as an engine receives it. */
export interface RenderJob {
  readonly kind: Kind
  /** The id and model of the run, for an engine that passes them on. */
  readonly run?: { readonly id: string; readonly model: string }
  /**
   * The accepted input, valid against the model's schema and with defaults applied (SERVICE.md 2.3, 2.4):
   * image `{prompt, aspect_ratio, quality, image_urls?}`, video `{prompt, aspect_ratio, resolution, duration, image_urls?}`.
   */
  readonly input: Readonly<Record<string, unknown>>
  /**
   * An existing empty folder for the outputs; a file gets its final name only when it is complete. The caller removes the folder, with
   * what the engine left in it.
   */
  readonly folder: string
  /**
   * Files with the reference images, in the order of `image_urls`; undefined for one that could not be loaded. They belong to
   * this job, and the engine may move them. Their content is not checked to be an image.
   */
  readonly references: readonly (string | undefined)[]
  /** Once aborted, `render` rejects promptly with the signal's reason. */
  readonly signal: AbortSignal
  /** Called from time to time with the progress from 0 to 1, which never decreases. */
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
  /** How long one job may take, without the loading of its references; by default the service's limit. Infinity: no limit. */
  limitMs?(kind: Kind): number | undefined
  /** Ends processes that are kept between jobs. */
  close?(): Promise<void>
}
