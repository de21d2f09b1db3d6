/**
 * The interface of an engine. An engine creates the outputs of a run: the preview renderer (src/preview), a shell
 * command of the user, or the server of a model. The service loads references, enforces time limits and stores the
 * files. An engine only writes the files for one accepted input into one folder; it has no access to the keys of users.
 */
import type { Kind } from '../../protocol/models.js'

/** A job without its functions, which cannot be sent to a process. To abort the job, the service ends the process. */
export interface RemoteJob {
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
}

/** What a request to the server of a model needs of its job. */
export interface UpstreamJob {
  /** For files of the answer too, which get names that begin with a dot. */
  readonly folder: string
  /** When aborted, `render` must reject promptly with the signal's reason. */
  readonly signal: AbortSignal
  /** Called before each request, or command, that may cost money. */
  onSend?(): Promise<void>
  /** Called after `onSend` when the server has certainly not accepted the request. */
  onRefused?(): Promise<void>
}

/** One accepted run, as an engine receives it. */
export interface RenderJob extends RemoteJob, UpstreamJob {
  /**
   * Paths of the files in the other media parameters, by name: the mask, the last frame, a video. Undefined like those of
   * `references`. The engine may move these files.
   */
  readonly media?: Readonly<Record<string, readonly (string | undefined)[]>> | undefined
  /** Reports the progress from 0 to 1. The values must not decrease. */
  onProgress?(fraction: number): void
  /** Reports the number of jobs before this one in the queue of a server. */
  onPosition?(position: number): void
  /** The model that the run carries, as JSON. */
  readonly document?: string | undefined
  /** What an earlier attempt has stored with the run. */
  readonly stored?: StoredJob | undefined
  /** Stores the job with the run. Rejects when the run no longer belongs to this worker. Undefined: it is not stored. */
  save?(stored: StoredJob): Promise<void>
}

/** Where a job is. Nothing about it is sent to another server. */
export interface JobPlace {
  /** The type of its engine. */
  readonly type: string
  readonly origin: string
  /** Whether it may cost money. */
  readonly costs: boolean
}

/**
 * A job at the server of a model: its id, and what else is needed to follow it. At most 4 KiB as JSON.
 */
export interface JobHandle {
  readonly id: string
  /** URLs of the job by name, all of the origin of the engine's server. */
  readonly urls?: Readonly<Record<string, string>>
  /** Undefined for a job that an operator has named, and for one of an earlier version. */
  readonly place?: JobPlace
}

/** A create that is sent to a server at most once. Stored before it is sent. */
export interface JobIntent {
  /** Random, so that the answer to this create is known again. */
  readonly id: string
  readonly sentAtMs: number
  /** Path below the server's URL, or the command. */
  readonly endpoint: string
  readonly place?: JobPlace
}

/** An intent without a handle: the create may have been accepted, and its answer is not known. */
export interface StoredJob {
  readonly intent?: JobIntent
  readonly handle?: JobHandle
  /** Whether an operator has named the job. Its server may not know it; the outcome is then as unknown as before. */
  readonly isNamed?: true
  /** How the job ended: with a result, without one, or by a cancel that cost its charge. Undefined while it may continue. */
  readonly end?: 'done' | 'over' | 'charged'
}

export interface RenderedFile {
  /** File name in the job's folder, without a path. */
  readonly name: string
  /** Media type, for example `image/png` or `video/mp4`. */
  readonly contentType: string
}

/** Whether the provider charged for a job that was canceled. */
export type Charge = 'charged' | 'not charged' | 'unknown'

/**
 * `succeeded`: it was too late, and the result is there. `not canceled`: the server did not answer, or does not have the job
 * yet, so the job may continue.
 */
export type CancelEnd = Charge | 'succeeded' | 'not canceled'

/** A run whose job is canceled. */
export interface CanceledJob {
  readonly id: string
  readonly model: string
  readonly document?: string | undefined
  readonly stored?: StoredJob | undefined
}

export interface Engine {
  /**
   * Creates the outputs of one run and returns them in order. Rejects with the signal's reason when aborted, and with
   * any other error when the run has failed. A run with a stored job follows it, and starts no other one. The job
   * continues after `JobDetached`; any other reason cancels it.
   */
  render(job: RenderJob): Promise<readonly RenderedFile[]>
  /** Time limit of one job, without the time to load its references. Default: one hour. */
  limitMs?(model: string): number | undefined
  /**
   * Called for a canceled run, after its render has ended, until the job is canceled: cancels it by its own id. Undefined: the
   * engine has no jobs that outlive `render`.
   */
  cancel?(run: CanceledJob): Promise<CancelEnd | undefined>
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

/** The reason with which a job is aborted when this worker stops or loses its lease: another worker follows the job. */
export class JobDetached extends Error {
  override readonly name = 'JobDetached'
  /** Time that a create in flight has for its answer. Default: `STOP_GRACE_MS`. */
  readonly graceMs: number

  constructor(message: string, graceMs: number = STOP_GRACE_MS) {
    super(message)
    this.graceMs = graceMs
  }
}

/** With the limits of a worker that stops, a service ends within five seconds. */
export const STOP_GRACE_MS = 2_500

/**
 * A server that costs money may have accepted the run. It is not sent again, and its credits stay charged until an
 * operator decides.
 */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'

  constructor(reason: string) {
    super(
      `The provider may have accepted this run and charged for it, but its result is unknown. It was not sent again. ${reason}`,
    )
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
