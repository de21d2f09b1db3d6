/**
 * The interface of an engine. An engine creates the outputs of a run: the preview renderer (src/preview), a shell
 * command of the user, or the server of a model. The service loads references, enforces time limits and stores the
 * files. An engine only writes the files for one accepted input into one folder; it has no access to the keys of users.
 */
import type { Kind } from '../../protocol/models.js'

/** One accepted run, as an engine receives it. */
export interface RenderJob {
  readonly kind: Kind
  /** Id and model of the run, for an engine that passes them to its command. */
  readonly run?: { readonly id: string; readonly model: string }
  /** The accepted input, valid against the model's schema and with its defaults applied. */
  readonly input: Readonly<Record<string, unknown>>
  /**
   * An existing, empty folder for the outputs. A file must get its final name only when it is complete. The caller
   * removes the folder and its files.
   */
  readonly folder: string
  /**
   * Paths of the reference images, in the order of `image_urls`. Undefined for an image that could not be loaded. The
   * engine may move these files. The service does not check that they contain images.
   */
  readonly references: readonly (string | undefined)[]
  /** When aborted, `render` must reject promptly with the signal's reason. */
  readonly signal: AbortSignal
  /** Reports the progress from 0 to 1. The values must not decrease. */
  onProgress?(fraction: number): void
}

export interface RenderedFile {
  /** File name in the job's folder, without a path. */
  readonly name: string
  /** Media type, for example `image/png` or `video/mp4`. */
  readonly contentType: string
}

/** Whether the provider charged for a job that was canceled. */
export type Charge = 'charged' | 'not charged' | 'unknown'

export interface Engine {
  /**
   * Creates the outputs of one run and returns them in order. Rejects with the signal's reason when aborted, and with
   * any other error when the run has failed.
   */
  render(job: RenderJob): Promise<readonly RenderedFile[]>
  /**
   * Time limit of one job, without the time to load its references. Undefined: the service's limit. Infinity: no limit.
   */
  limitMs?(model: string): number | undefined
  /**
   * Asks the engine's server for its version and models, for `rushes doctor --models`. Resolves with a few words, such as
   * `stable-diffusion.cpp, model sd-cpp-local`; rejects with the problem. Starts no job. Undefined: it has no server.
   */
  check?(signal: AbortSignal): Promise<string>
  /**
   * Called for a canceled run, after its render has ended: cancels its job at the provider, by the job's own id, and
   * returns whether it was charged. Undefined: the engine has no jobs that outlive `render`.
   */
  cancel?(run: { readonly id: string; readonly model: string }): Promise<Charge | undefined>
  /** Ends all processes and connections of the engine. */
  close?(): Promise<void>
}

/** The reason with which a job is aborted after its user has canceled the run. */
export class RunCanceled extends Error {
  override readonly name = 'RunCanceled'

  constructor() {
    super('The run was canceled.')
  }
}

/**
 * The renderer's process ended before the job was finished. The run may not be the reason, so it is retried a few
 * times.
 */
export class RendererCrashed extends Error {
  override readonly name = 'RendererCrashed'
  readonly #stderrTail: string

  /** The service logs the message, but not `stderrTail`. */
  constructor(message: string, stderrTail = '') {
    super(message)
    this.#stderrTail = stderrTail
  }

  /**
   * The end of standard error, for the owner of the run only: it may contain the prompt or secrets. Stored in a private
   * field, so that a logger does not print it with the properties of the error.
   */
  get stderrTail(): string {
    return this.#stderrTail
  }
}

/** The service is closing. It starts no renderers, and ends the running renderers. */
export class RendererClosed extends RendererCrashed {
  constructor() {
    super('the renderer is closed')
  }
}

/**
 * The service ended the renderer at the memory limit. The run fails without a retry: a retry would need the same
 * memory.
 */
export class TooMuchMemory extends Error {
  override readonly name = 'TooMuchMemory'

  constructor(maxBytes: number) {
    super(`The renderer needed more than ${Math.round(maxBytes / 1_048_576)} MiB of memory.`)
  }
}
