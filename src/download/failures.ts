/** How a download fails: an attempt over the network, and when to retry it; or the disk. */
import { RushesError, type RushesErrorOptions } from '../errors.js'
import { jittered, stepOf } from '../host/retry.js'
import { describeReason, errorCode } from '../host/system-error.js'
import { printable, shortened } from '../protocol/text.js'

interface AttemptFailedOptions {
  /** The same request may succeed later. */
  readonly isRetryable: boolean
  /** The bytes received so far may be of use to a later command. Default: `isRetryable`. */
  readonly isWorthKeeping?: boolean | undefined
  /** The HTTP status, when that was the problem. */
  readonly status?: number | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly isRetryable: boolean
  readonly isWorthKeeping: boolean
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined

  /** `reason` is printable and fits after a colon: `the host answered 503`. */
  constructor(
    reason: string,
    { isRetryable, isWorthKeeping, status, retryAfterMs, cause }: AttemptFailedOptions,
  ) {
    super(shortened(printable(reason)), { cause })
    this.isRetryable = isRetryable
    this.isWorthKeeping = isWorthKeeping ?? isRetryable
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

const WAITS_MS = [1_000, 2_000, 4_000, 8_000, 16_000] as const
export const MAX_RETRY_AFTER_MS = 60_000
/** Downloads that failed together, for example when a host restarts, should not all retry at the same instant. */
const JITTER = { min: 0.75, max: 1.25 } as const

/** Milliseconds until the next try after failed try `number` (from 1), or undefined when that was the last. */
export function waitAfter(failure: AttemptFailed, number: number, random: number): number | undefined {
  if (!failure.isRetryable || number > WAITS_MS.length) return undefined
  const step = stepOf(WAITS_MS, number)
  const wait = jittered({ min: step * JITTER.min, max: step * JITTER.max }, random)
  return Math.max(wait, Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS))
}

/** For a status other than 200. */
export function failureOfStatus(status: number, retryAfterMs: number | undefined): AttemptFailed {
  const isRetryable = status >= 500 || status === 408 || status === 429
  const requestedMs = status === 429 || status === 503 ? retryAfterMs : undefined
  return new AttemptFailed(`the host answered ${status}`, { isRetryable, status, retryAfterMs: requestedMs })
}

/** Hosts answer with these when a signed link has expired. */
export const mayHaveExpired = ({ status }: AttemptFailed): boolean =>
  status === 403 || status === 404 || status === 410

/** This many new bytes are progress, after which failures are counted from one again. */
export const PROGRESS_BYTES = 1_048_576
/** 2 GiB in pieces of 21 MiB. */
export const MAX_TRIES = 100

/**
 * Five retries after a failure. The count starts again with every mebibyte beyond the furthest byte so far:
 * otherwise a large file would never arrive over a connection that breaks every hundred megabytes. Bytes that are
 * downloaded a second time are no progress, and the total number of tries is limited.
 */
interface RetryBudget {
  /** In a row, without progress. */
  readonly failures: number
  /** Over all tries. */
  readonly tries: number
  /** Useful bytes when the count last started. */
  readonly furthestBytes: number
}

/** `usefulBytes` is what an earlier command left. */
export const newRetryBudget = (usefulBytes: number): RetryBudget => ({
  failures: 0,
  tries: 0,
  furthestBytes: usefulBytes,
})

/** `usefulBytes` is what the failed try leaves to resume from. */
export function afterFailedTry(
  { failures, tries, furthestBytes }: RetryBudget,
  usefulBytes: number,
): RetryBudget {
  const hasProgress = usefulBytes >= furthestBytes + PROGRESS_BYTES
  return {
    failures: hasProgress ? 1 : failures + 1,
    tries: tries + 1,
    furthestBytes: hasProgress ? usefulBytes : furthestBytes,
  }
}

/** The reason why a file cannot be written. A missing file is then its folder. */
export const describeFileError = (error: unknown): string =>
  errorCode(error) === 'ENOENT' && (error as { syscall?: unknown }).syscall !== 'mkdir'
    ? 'the folder does not exist'
    : printable(describeReason(error))

/** `what` is a sentence without its period. */
export const downloadFailed = (what: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('download_failed', `${what}.`, options)

/** Runs `work` and turns its system errors into `download_failed` for `path`. */
export async function withWriteErrors<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RushesError || errorCode(error) === undefined) throw error
    throw downloadFailed(`Could not write ${printable(path)}: ${describeFileError(error)}`, { cause: error })
  }
}
