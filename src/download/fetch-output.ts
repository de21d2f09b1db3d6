/** One output to a whole part file: tried again while that can help, and with a fresh link when the old one may have expired. */
import { messageOf } from '../errors.js'
import type { Clock } from '../host/clock.js'
import type { Fetch } from '../host/http.js'
import { retry } from '../host/retry.js'
import { Miss, mayHaveExpired, waitAfter } from './attempt-failed.js'
import type { Meter } from './download-progress.js'
import { failed } from './file-errors.js'
import { parseAddress, printableAddress } from './output-url.js'
import type { Landing } from './part-session.js'
import { usefulBytes } from './resume-plan.js'
import { afterFailure, MOST_TRIES, patienceAt } from './retry-budget.js'
import { type Arrival, transfer } from './transfer.js'

export interface Means {
  readonly fetch: Fetch
  readonly clock: Pick<Clock, 'sleep' | 'now'>
  /** In [0, 1): spreads the tries that follow a failure. */
  readonly random: () => number
  readonly userAgent?: string | undefined
}

export interface Source {
  readonly url: string
  /** Asks the run once more for the link of this output. Undefined: there is none. */
  readonly freshUrl?: (() => Promise<string | undefined>) | undefined
}

/** A failed try that another one follows. */
export interface Retrying {
  /** Without its query. */
  readonly url: string
  readonly reason: string
  readonly waitMs: number
  /** The number of the failed try, from 1. */
  readonly number: number
}

export interface Course {
  readonly landing: Landing
  readonly meter: Meter
  readonly signal: AbortSignal | undefined
  readonly onRetry?: ((retrying: Retrying) => void) | undefined
}

type Outcome = (Arrival & { readonly url: string }) | Miss

/** Throws `download_failed`, or the signal's reason. The caller places, keeps or discards the part. */
export async function fetchOutput(
  { fetch, clock, random, userAgent }: Means,
  { url: firstUrl, freshUrl }: Source,
  { landing, meter, signal, onRetry }: Course,
): Promise<Arrival & { readonly url: string }> {
  let address = firstUrl
  let askForFreshUrl = freshUrl
  const useful = () => usefulBytes(landing.part?.about, landing.part?.bytes ?? 0)
  let patience = patienceAt(useful())

  async function tryOnce(): Promise<Outcome> {
    const url = parseAddress(address)
    if (url === undefined) return new Miss('the address is no http or https URL', { again: false })
    try {
      const question = { fetch, url, userAgent, signal, nowMs: clock.now() }
      return { ...(await transfer(question, landing, meter)), url: address }
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof Miss) return error
      throw error
    }
  }

  async function tryWithFreshUrl(miss: Miss): Promise<Outcome> {
    const asking = askForFreshUrl
    askForFreshUrl = undefined
    let fresh: string | undefined
    try {
      fresh = await asking?.()
    } catch (error) {
      signal?.throwIfAborted()
      const why = messageOf(error)
      const { status } = miss
      return new Miss(`${miss.message}, and no fresh link could be got: ${why}`, {
        again: false,
        mayComeLater: true,
        status,
        cause: error,
      })
    }
    if (fresh === undefined || fresh === address) return miss
    address = fresh
    return tryOnce()
  }

  return retry<Outcome, Arrival & { readonly url: string }>({
    clock,
    signal,
    async attempt() {
      const outcome = await tryOnce()
      return outcome instanceof Miss && mayHaveExpired(outcome) && askForFreshUrl !== undefined
        ? tryWithFreshUrl(outcome)
        : outcome
    },
    decide(outcome) {
      if (!(outcome instanceof Miss)) return { done: outcome }
      const { furthestBytes } = patience
      patience = afterFailure(patience, useful())
      const { failures, tries } = patience
      // A link that has brought something since may expire once more.
      if (patience.furthestBytes > furthestBytes) askForFreshUrl = freshUrl
      const retryInMs = tries < MOST_TRIES ? waitAfter(outcome, failures, random()) : undefined
      return retryInMs === undefined ? { fail: givenUp(address, outcome, tries) } : { retryInMs }
    },
    onRetry(outcome, waitMs) {
      if (outcome instanceof Miss)
        onRetry?.({ url: printableAddress(address), reason: outcome.message, waitMs, number: patience.tries })
    },
  })
}

function givenUp(address: string, miss: Miss, tries: number): Error {
  const times = tries > 1 ? `, ${tries} times tried` : ''
  return failed(`could not download ${printableAddress(address)}: ${miss.message}${times}`, {
    cause: miss,
    httpStatus: miss.status,
  })
}
