/** A try that brought no whole file, and what follows from it: pure, tested by table. */
import { jittered, stepOf } from '../host/backoff.js'
import { printable, shortened } from '../protocol/text.js'

export interface MissOptions {
  /** The same request may do better later. */
  readonly again: boolean
  /** What has arrived is of use to a later command; where the same request may do better, it always is. */
  readonly mayComeLater?: boolean | undefined
  /** The status that the host answered with, when that is what was wrong. */
  readonly status?: number | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

export class Miss extends Error {
  override readonly name = 'Miss'
  readonly again: boolean
  readonly mayComeLater: boolean
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined

  /** `reason` is printable and fits after a colon: `the host answered 503`. */
  constructor(reason: string, { again, mayComeLater, status, retryAfterMs, cause }: MissOptions) {
    super(shortened(printable(reason)), { cause })
    this.again = again
    this.mayComeLater = mayComeLater ?? again
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

const WAITS_MS = [1_000, 2_000, 4_000, 8_000, 16_000] as const
export const MOST_RETRY_AFTER_MS = 60_000
/** Downloads that broke together, as when a host restarts, must not all come back in the same instant. */
const SPREAD = { min: 0.75, max: 1.25 } as const

/** Milliseconds until the next try after failed try `number` (from 1), or undefined when that was the last. */
export function waitAfter(miss: Miss, number: number, random: number): number | undefined {
  if (!miss.again || number > WAITS_MS.length) return undefined
  const step = stepOf(WAITS_MS, number)
  const wait = jittered({ min: step * SPREAD.min, max: step * SPREAD.max }, random)
  return Math.max(wait, Math.min(miss.retryAfterMs ?? 0, MOST_RETRY_AFTER_MS))
}

/** What a status other than 200 means. */
export function missOfStatus(status: number, retryAfterMs: number | undefined): Miss {
  const again = status >= 500 || status === 408 || status === 429
  const wish = status === 429 || status === 503 ? retryAfterMs : undefined
  return new Miss(`the host answered ${status}`, { again, status, retryAfterMs: wish })
}

/** Statuses that a host gives for a link past its time. */
export const mayHaveExpired = ({ status }: Miss): boolean =>
  status === 403 || status === 404 || status === 410
