/** Downloads one output to a complete part file, with retries, and with a fresh link when the old one may have expired. */
import { messageOf } from '../errors.js'
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import { retry } from '../host/retry.js'
import { AttemptFailed, mayHaveExpired, waitAfter } from './attempt-failed.js'
import type { FileMeter } from './download-progress.js'
import { downloadFailed } from './file-errors.js'
import { parseOutputUrl, printableUrl } from './output-url.js'
import type { PartSession } from './part-session.js'
import { usefulBytes } from './resume-plan.js'
import { afterFailedTry, MAX_TRIES, newRetryBudget } from './retry-budget.js'
import { type FetchedPart, transfer } from './transfer.js'

export interface DownloaderOptions {
  readonly fetch: Fetch
  readonly clock: Pick<Clock, 'alarm' | 'sleep' | 'now'>
  /** In [0, 1): spreads retries. */
  readonly random: () => number
  readonly userAgent?: string | undefined
  /** Where processes show that they run. Without it, a part of a killed one is taken over after five minutes. */
  readonly stateFolder?: string | undefined
}

export interface Source {
  readonly url: string
  /** Asks the service for a new link to this output. Resolves with undefined when there is none. */
  readonly freshUrl?: (() => Promise<string | undefined>) | undefined
}

/** An attempt failed and will be retried. */
export interface RetryNotice {
  /** Without its query. */
  readonly url: string
  readonly reason: string
  readonly waitMs: number
  /** The number of the failed attempt, from 1. */
  readonly number: number
}

export interface FetchOptions {
  readonly session: PartSession
  readonly meter: FileMeter
  readonly signal: AbortSignal | undefined
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

type TryOutcome = (FetchedPart & { readonly url: string }) | AttemptFailed

/** Throws `download_failed`, or the signal's reason. The caller moves, keeps or discards the part. */
export async function fetchOutput(
  { fetch, clock, random, userAgent }: DownloaderOptions,
  { url: firstUrl, freshUrl }: Source,
  { session, meter, signal, onRetry }: FetchOptions,
): Promise<FetchedPart & { readonly url: string }> {
  let address = firstUrl
  let askForFreshUrl = freshUrl
  const useful = () => usefulBytes(session.part?.metadata, session.part?.bytes ?? 0)
  let budget = newRetryBudget(useful())

  async function tryOnce(): Promise<TryOutcome> {
    const url = parseOutputUrl(address)
    if (url === undefined)
      return new AttemptFailed('the URL is not an http or https URL', { isRetryable: false })
    try {
      const request = { fetch, url, userAgent, signal, nowMs: clock.now(), alarm: clock.alarm }
      return { ...(await transfer(request, session, meter)), url: address }
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof AttemptFailed) return error
      throw error
    }
  }

  async function tryWithFreshUrl(failure: AttemptFailed): Promise<TryOutcome> {
    const askOnce = askForFreshUrl
    askForFreshUrl = undefined
    let fresh: string | undefined
    try {
      fresh = await askOnce?.()
    } catch (error) {
      signal?.throwIfAborted()
      const why = messageOf(error)
      const { status } = failure
      return new AttemptFailed(`${failure.message}, and the service gave no new link: ${why}`, {
        isRetryable: false,
        isWorthKeeping: true,
        status,
        cause: error,
      })
    }
    if (fresh === undefined || fresh === address) return failure
    address = fresh
    return tryOnce()
  }

  return retry<TryOutcome, FetchedPart & { readonly url: string }>({
    clock,
    signal,
    async attempt() {
      const outcome = await tryOnce()
      return outcome instanceof AttemptFailed && mayHaveExpired(outcome) && askForFreshUrl !== undefined
        ? tryWithFreshUrl(outcome)
        : outcome
    },
    decide(outcome) {
      if (!(outcome instanceof AttemptFailed)) return { done: outcome }
      const { furthestBytes } = budget
      budget = afterFailedTry(budget, useful())
      const { failures, tries } = budget
      // After progress, the link may be refreshed once more.
      if (budget.furthestBytes > furthestBytes) askForFreshUrl = freshUrl
      const retryInMs = tries < MAX_TRIES ? waitAfter(outcome, failures, random()) : undefined
      return retryInMs === undefined ? { fail: givenUp(address, outcome, tries) } : { retryInMs }
    },
    onRetry(outcome, waitMs) {
      if (outcome instanceof AttemptFailed)
        onRetry?.({ url: printableUrl(address), reason: outcome.message, waitMs, number: budget.tries })
    },
  })
}

function givenUp(address: string, failure: AttemptFailed, tries: number): Error {
  const times = tries > 1 ? ` (tried ${tries} times)` : ''
  return downloadFailed(`Could not download ${printableUrl(address)}: ${failure.message}${times}`, {
    cause: failure,
    httpStatus: failure.status,
  })
}
