/** Errors of downloads: failed attempts over the network, when to retry them, and errors of the disk. */
import { RushesError, type RushesErrorOptions } from '../errors.js'
import { jittered, stepOf } from '../host/retry.js'
import { describeReason, errorCode } from '../host/system-error.js'
import { printable, shortened } from '../protocol/text.js'

interface AttemptFailedOptions {
  /** Whether the same request may succeed later. */
  readonly isRetryable: boolean
  /** The HTTP status, if it was the reason. */
  readonly status?: number | undefined
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly isRetryable: boolean
  readonly status: number | undefined
  readonly retryAfterMs: number

  /** `reason` must make sense after a colon: `the host answered 503`. */
  constructor(reason: string, { isRetryable, status, retryAfterMs = 0, cause }: AttemptFailedOptions) {
    super(shortened(printable(reason)), { cause })
    this.isRetryable = isRetryable
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

const WAITS_MS = [1_000, 2_000, 4_000, 8_000, 16_000] as const
/**
 * Range of a random factor: downloads that failed together, for example after a restart of the host, should not all
 * retry at the same moment.
 */
const JITTER = { min: 0.75, max: 1.25 } as const

/** Returns the milliseconds to wait after failed try `number` (from 1), or undefined without another try. */
export function waitAfter(failure: AttemptFailed, number: number, random: number): number | undefined {
  if (!failure.isRetryable || number > WAITS_MS.length) return undefined
  const step = stepOf(WAITS_MS, number)
  const wait = jittered({ min: step * JITTER.min, max: step * JITTER.max }, random)
  return Math.max(wait, failure.retryAfterMs)
}

/** Returns the error for a status other than 200. */
export function failureOfStatus(status: number, retryAfterMs: number): AttemptFailed {
  const isRetryable = status >= 500 || status === 408 || status === 429
  const requestedMs = status === 429 || status === 503 ? retryAfterMs : 0
  return new AttemptFailed(`the host answered ${status}`, { isRetryable, status, retryAfterMs: requestedMs })
}

/** Whether a signed link may have expired: hosts answer with these statuses then. */
export const mayHaveExpired = ({ status }: AttemptFailed): boolean =>
  status === 403 || status === 404 || status === 410

/** New bytes that count as progress: failures are then counted from one again. */
export const PROGRESS_BYTES = 1_048_576

/** Describes why a file cannot be written. ENOENT then means that its folder is missing. */
export const describeFileError = (error: unknown): string =>
  errorCode(error) === 'ENOENT' && (error as { syscall?: unknown }).syscall !== 'mkdir'
    ? 'the folder does not exist'
    : printable(describeReason(error))

/** `what`: a sentence without its period. */
export const downloadFailed = (what: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('download_failed', `${what}.`, options)

/** Runs `work` and converts its system errors to `download_failed` for `path`. */
export async function withWriteErrors<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RushesError || errorCode(error) === undefined) throw error
    throw downloadFailed(`Could not write ${printable(path)}: ${describeFileError(error)}`, { cause: error })
  }
}
