/** Failures of runs: the codes, and the messages for the person who created the run. */
import { messageOf } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { FolderReplaced } from '../../host/own-folder.js'
import { retryErrors, stepOf } from '../../host/retry.js'
import { errorCode, isSystemError } from '../../host/system-error.js'
import { OUTCOME_UNKNOWN, PROVIDER_REFUSED } from '../../protocol/run-state.js'
import { shortened, withoutControls } from '../../protocol/text.js'
import { OutcomeUnknown, type RendererCrashed } from '../engines/engine.js'
import { isRefusedKey, JobEnded } from '../engines/upstream/upstream-error.js'
import type { CrashLimit, RunFailure } from '../store/run.js'

const MAX_MESSAGE_LENGTH = 2_500

/** The reason with which a render is aborted at its time limit. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'

  constructor(limitMs: number) {
    super(`The engine took longer than ${formatLimit(limitMs)}.`)
  }
}

const formatLimit = (ms: number): string =>
  ms % 60_000 === 0 ? `${ms / 60_000} minute${ms === 60_000 ? '' : 's'}` : `${ms / 1_000} s`

export function failureOf(error: unknown): RunFailure {
  const message = withoutControls(messageFor(error)).trim()
  return {
    code: codeOf(error),
    message: shortened(message === '' ? 'The engine failed without a message.' : message, MAX_MESSAGE_LENGTH),
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
  const withStderr = shortened(
    `${message} End of its standard error: ${withoutControls(stderrTail)}`,
    MAX_MESSAGE_LENGTH,
  )
  return { ...CRASH_LIMIT, failure: { code, message: withStderr } }
}

/**
 * Failure of a run whose end the database refuses to record, for example because of a corrupt row, a constraint or a
 * bug.
 */
export const NOT_RECORDED: RunFailure = {
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
export function persist<Value>(
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
