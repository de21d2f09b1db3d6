/** A failed attempt to download a file, and when to retry it. Pure, tested by table. */
import { jittered, stepOf } from '../host/backoff.js'
import { printable, shortened } from '../protocol/text.js'

export interface AttemptFailedOptions {
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
