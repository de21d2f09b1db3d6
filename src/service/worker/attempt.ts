/**
 * One claimed run: renders it, and records how it ended. An aborted attempt records nothing: the worker returns its run to the
 * queue, another worker has it, or it was canceled.
 */
import { messageOf } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { FolderReplaced } from '../../host/own-folder.js'
import { retryErrors, stepOf } from '../../host/retry.js'
import { describeReason, errorCode, isSystemError } from '../../host/system-error.js'
import { OUTCOME_UNKNOWN, PROVIDER_REFUSED } from '../../protocol/run-state.js'
import { withEllipsis, withoutControls } from '../../protocol/text.js'
import {
  JobDetached,
  type JobIntent,
  OutcomeUnknown,
  RendererCrashed,
  type StoredJob,
} from '../engines/engine.js'
import { isRefusedKey, JobEnded } from '../engines/upstream/upstream-error.js'
import { StorageUnavailable } from '../files/contract.js'
import type { ServedModel } from '../models/served-model.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { Store } from '../store/index.js'
import { MIN_CREATE_LEASE_MS } from '../store/queue.js'
import type { ClaimedRun, CrashLimit, HeldRun, RenderState, RunFailure, StoredOutput } from '../store/run.js'
import { isDiskUnusable } from './log.js'
import { type RenderParts, type RenderRecorders, removeOutputs, render, withReferences } from './render.js'

/** Without the time to load references. */
const RENDER_LIMIT_MS = 3_600_000
/** Pauses between the tries to store a result on a disk that is full or damaged. */
const DISK_STEPS_MS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000]

export interface AttemptOptions extends RenderParts {
  readonly references: ReferenceLoader
  readonly store: Store
  /** Measures the render of one run. */
  readonly timeRender?: (<Value>(kind: HeldRun['kind'], render: Promise<Value>) => Promise<Value>) | undefined
  /** Default: renders into files. */
  readonly renderRun?: typeof render
}

/** What a run needs of the worker that has it. */
interface Owner {
  readonly id: string
  /** Aborted when the worker stops. */
  readonly closing: AbortSignal
  /** Renews the leases of its runs. */
  renew(): Promise<void>
  /** Called when a slot is free. */
  fillSlots(): void
}

export class Attempt {
  readonly run: HeldRun
  readonly isRemote: boolean
  /** Aborted when the worker stops, or when the run is canceled or no longer its own. */
  readonly stop = new AbortController()
  /** Whether it uses a slot. False once its end could not be recorded. */
  hasSlot = true
  /** Whether its end is being recorded. A renewal then may not find the run, which is not lost. */
  isEnding = false
  state: RenderState = {}
  readonly #owner: Owner
  readonly #options: AttemptOptions

  constructor(run: HeldRun, isRemote: boolean, owner: Owner, options: AttemptOptions) {
    this.run = run
    this.isRemote = isRemote
    this.#owner = owner
    this.#options = options
  }

  /** Renders the run with the model that it carries. */
  async process(model: ServedModel | undefined): Promise<void> {
    const { run, stop } = this
    try {
      // The stored input of this run is corrupt.
      if (run.failure !== undefined) throw new Error(run.failure.message)
      await this.#finish(await this.#render(model))
    } catch (error) {
      if (!stop.signal.aborted) await this.#fail(error)
    }
  }

  #render(model: ServedModel | undefined): Promise<readonly StoredOutput[]> {
    const { run } = this
    const { signal } = this.stop
    const { engine, clock, timeRender = (_kind, rendering) => rendering, renderRun = render } = this.#options
    const timeoutMs = engine.limitMs?.(run.model) ?? RENDER_LIMIT_MS
    const limit = { timeoutMs, reason: () => new DeadlinePassed(), clock, signal }
    const options = { ...this.#options, schema: model?.document.input }
    const renderOnce = () =>
      withReferences(run, options, signal, (references) =>
        timeRender(run.kind, renderRun(run, references, { ...options, ...this.#recorders() }, limit)),
      )
    // The server still has the result of its job, which may have been paid for.
    return retryErrors(renderOnce, {
      pauseMs: (error, number) =>
        run.job?.handle !== undefined && isDiskUnusable(error) ? stepOf(DISK_STEPS_MS, number) : undefined,
      onRetry: (cause) =>
        options.onError(
          new StorageUnavailable(
            `The result of ${run.id} cannot be stored: ${describeReason(cause)}. Trying again.`,
            { cause },
          ),
        ),
      clock,
      signal,
    })
  }

  /** Callbacks of the render, which store its progress and job. */
  #recorders(): RenderRecorders {
    const { run } = this
    return {
      onProgress: (progress) => {
        // False for NaN.
        if (progress > (this.state.progress ?? 0) && progress <= 1) this.state = { ...this.state, progress }
      },
      onPosition: (position) => {
        this.state = { ...this.state, queue_position: position }
      },
      saveJob: async (job) => {
        const { intent, handle } = job
        const isCreate = intent !== undefined && handle === undefined
        if (!(await (isCreate ? this.#saveIntent(intent) : this.#saveJob(job, run.job?.intent))))
          throw new JobDetached('Another worker has taken the run over.')
        run.job = job
      },
    }
  }

  /** Saves the intent of a create, which may then be sent: at least 10 s of lease are left. */
  async #saveIntent(intent: JobIntent): Promise<boolean> {
    const { store, clock } = this.#options
    for (let tries = 1; tries <= 2; tries++) {
      // The lease may have run out while the database, or this process, stood still.
      if (tries > 1) await this.#owner.renew()
      const startedMs = clock.monotonic()
      const leftMs = await this.#persist(() => store.saveIntent(this.#claimed(), intent))
      // Counts the time of the request as used.
      if (leftMs !== undefined && leftMs - (clock.monotonic() - startedMs) >= MIN_CREATE_LEASE_MS) return true
      if (leftMs !== undefined && !(await this.#saveJob({}, intent))) return false
    }
    return false
  }

  #saveJob(job: StoredJob, intent?: JobIntent): Promise<boolean> {
    return this.#persist(() => this.#options.store.saveJob(this.#claimed(), job, intent))
  }

  /** Retries a write. After an abort, there is only time for one try. */
  #persist<Value>(write: () => Promise<Value>, signal = this.stop.signal): Promise<Value> {
    return signal.aborted ? write() : persist(write, { ...this.#options, signal })
  }

  #claimed(): ClaimedRun {
    const { id, attempt } = this.run
    return { id, attempt, owner: this.#owner.id, nowMs: this.#options.clock.now() }
  }

  /**
   * Records how the run ended. If the database refuses that, fails the run with `NOT_RECORDED`. Returns undefined when the run
   * no longer belongs to this worker.
   */
  async #record<Value>(write: () => Promise<Value>): Promise<Value | 'not_recorded' | undefined> {
    const { closing } = this.#owner
    const { store, onError } = this.#options
    this.isEnding = true
    try {
      return await this.#persist(write, closing)
    } catch (error) {
      closing.throwIfAborted()
      onError(error)
    }
    // Recording the end may take long, so the run uses no slot until then.
    this.hasSlot = false
    this.#owner.fillSlots()
    const fail = () => store.failRun(this.#claimed(), NOT_RECORDED)
    const limits = { maxRefusals: Number.POSITIVE_INFINITY, signal: this.stop.signal }
    return (await persist(fail, { ...this.#options, ...limits })) && 'not_recorded'
  }

  async #finish(outputs: readonly StoredOutput[]): Promise<void> {
    const { store, outputs: files } = this.#options
    const isRecorded = await this.#record(() => store.finishRun(this.#claimed(), outputs))
    // False: the lease had run out, and another worker took over the run. The outputs of that worker are used.
    if (isRecorded === false || isRecorded === 'not_recorded') await removeOutputs(outputs, files)
  }

  async #fail(error: unknown): Promise<void> {
    const { store, onError } = this.#options
    if (error instanceof RendererCrashed) {
      onError(error)
      await this.#record(() => store.recordCrash(this.#claimed(), crashLimitFor(error)))
      return
    }
    const failure = failureOf(error)
    const ended = await this.#record(() => store.failRun(this.#claimed(), failure))
    // Undefined: another worker has taken over the run and deleted its folder, which may have caused this error.
    if (ended !== undefined && ended !== 'not_recorded' && isSystemError(error)) onError(error)
  }
}

const MAX_MESSAGE_LENGTH = 2_500

/** The reason with which a render is aborted at its time limit. */
class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'

  override readonly message = 'The engine took longer than an hour.'
}

export function failureOf(error: unknown): RunFailure {
  const message = withoutControls(messageFor(error)).trim()
  return {
    code: codeOf(error),
    message: withEllipsis(message || 'The engine failed without a message.', MAX_MESSAGE_LENGTH),
  }
}

function codeOf(error: unknown): string {
  if (error instanceof OutcomeUnknown) return OUTCOME_UNKNOWN
  return error instanceof JobEnded && isRefusedKey(error) ? PROVIDER_REFUSED : 'render_failed'
}

function messageFor(error: unknown): string {
  if (isSystemError(error)) return `The service could not write the output files (${error.code}).`
  if (!(error instanceof FolderReplaced)) return messageOf(error)
  const found =
    error.found === 'nothing'
      ? "The engine's output folder is gone"
      : `There is ${error.found} in place of the engine's output folder`
  return `${found}, so nothing was published. The engine must write into the folder that it gets.`
}

export const CRASH_LIMIT: CrashLimit = {
  crashes: 3,
  failure: {
    code: 'renderer_crashed',
    message: 'The engine crashed three times on this run.',
  },
}

/** Returns `CRASH_LIMIT` with the end of the renderer's standard error in its message. */
export function crashLimitFor({ stderrTail }: RendererCrashed): CrashLimit {
  if (stderrTail === '') return CRASH_LIMIT
  const { code, message } = CRASH_LIMIT.failure
  const withStderr = `${message} End of its standard error: ${withoutControls(stderrTail)}`
  return { ...CRASH_LIMIT, failure: { code, message: withEllipsis(withStderr, MAX_MESSAGE_LENGTH) } }
}

/**
 * Failure of a run whose end the database refuses to record, for example because of a corrupt row, a constraint or a
 * bug.
 */
const NOT_RECORDED: RunFailure = {
  code: 'not_recorded',
  message: 'The service could not record how this run ended.',
}

/** Refused writes before a run fails with `NOT_RECORDED`. All attempts together take half a minute. */
const MAX_REFUSALS = 10

/**
 * Whether the database refuses the write itself. False for a full disk and for a locked or unreachable database: the
 * caller retries until these work again.
 */
const isRefusal = (error: unknown): boolean =>
  !/^(SQLITE_(BUSY|FULL|IOERR|LOCKED)|DATABASE_UNAVAILABLE$)/.test(errorCode(error) ?? '')

const RECORD_STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

interface PersistOptions {
  /** Default: 10. */
  readonly maxRefusals?: number
  readonly signal: AbortSignal
  readonly clock: Clock
  onError(error: unknown): void
}

/**
 * Retries a write after any error, because the run must not stay in `processing`. Rejects after the database has refused the
 * write `maxRefusals` times, or when the signal is aborted. If the service closes first, the run returns to the queue when the
 * lease is released.
 */
function persist<Value>(
  write: () => Promise<Value>,
  { maxRefusals = MAX_REFUSALS, signal, clock, onError }: PersistOptions,
): Promise<Value> {
  let refusals = 0
  return retryErrors(write, {
    pauseMs(error, number) {
      if (isRefusal(error)) refusals++
      return refusals < maxRefusals ? stepOf(RECORD_STEPS_MS, number) : undefined
    },
    onRetry: onError,
    clock,
    signal,
  })
}
