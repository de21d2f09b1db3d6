/**
 * The contract of an engine, which makes the outputs of a run: the preview renderer (src/preview), or a shell command of the
 * user (`--engine`). The service loads references, enforces time limits and stores the files; an engine turns one accepted
 * input into files in one folder, and knows nothing of keys or HTTP.
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
   * An existing empty folder for the outputs; a file gets its final name only when it is complete. The caller removes the
   * folder and its files.
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
   * Makes the outputs of one run, in the order in which they are listed. Rejects with the signal's reason when aborted,
   * and with any other error when the run has failed.
   */
  render(job: RenderJob): Promise<readonly RenderedFile[]>
  /** How long one job may take, without the loading of its references; by default the service's limit. Infinity: no limit. */
  limitMs?(kind: Kind): number | undefined
  /** Ends the processes that are kept between jobs. */
  close?(): Promise<void>
}

/** The renderer's process ended before its job. The run may not be the reason, so it is retried a few times. */
export class RendererCrashed extends Error {
  override readonly name = 'RendererCrashed'
  readonly #stderrTail: string

  /** The message is logged; `stderrTail` is not. */
  constructor(message: string, stderrTail = '') {
    super(message)
    this.#stderrTail = stderrTail
  }

  /**
   * For the owner of the run only, since it may contain the prompt or secrets. Private, so that no logger finds it among the
   * properties of the error.
   */
  get stderrTail(): string {
    return this.#stderrTail
  }
}

/** The service stops: it starts no renderer, and ends the running ones. */
export class RendererClosed extends RendererCrashed {
  constructor() {
    super('the renderer is closed')
  }
}

/** The service ended the renderer. The run fails at once: the same input would need as much memory again. */
export class TooMuchMemory extends Error {
  override readonly name = 'TooMuchMemory'

  constructor(maxBytes: number) {
    super(`The renderer needed more than ${Math.round(maxBytes / 1_048_576)} MiB of memory.`)
  }
}
