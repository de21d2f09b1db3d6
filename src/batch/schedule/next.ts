/**
 * What to ask the service next, pure. With N runs and 20 requests in 10 s nobody can finish before 2N requests fit, so
 * no request is spent that cannot pay:
 *
 * * Creates go first: a run that is created earlier ends earlier. The first goes alone until it is answered, since a refused
 *   key or an empty account then costs one request and not twenty; after it at most four are unanswered.
 * * Looks go to the run that is most likely done, the one not looked at for longest where that is equal.
 * * Where a look will almost certainly pay, only the limit decides when. Otherwise looks are spread evenly over the window: twenty
 *   at once and then none for ten seconds would find a run five seconds late on average, whatever else is done.
 */
import { chance, tooYoungMs } from './likelihood.js'

/** A run that exists and has not ended, as far as is known. */
export interface Flying {
  readonly createdAtMs: number
  /** Undefined before its first look. */
  readonly lookedAtMs: number | undefined
  /** After a look that brought no good answer. */
  readonly notBeforeMs: number
  readonly isLookedAt: boolean
  /** How long others of its model took. */
  readonly tookMs: readonly number[]
}

export interface Situation {
  /** Creates that are still to be sent. */
  readonly toCreate: number
  readonly unanswered: number
  /** Whether any create of this batch was answered. */
  readonly isAnswered: boolean
  readonly flying: readonly Flying[]
  /** The most runs under way at once; undefined: no cap. */
  readonly concurrency: number | undefined
  readonly lastLookAtMs: number | undefined
  readonly nowMs: number
}

export type Next =
  | { readonly do: 'create' }
  /** `at`: its place in `flying`. */
  | { readonly do: 'look'; readonly at: number }
  | { readonly do: 'wait'; readonly ms: number }
  /** Only an answer can change anything. */
  | { readonly do: 'rest' }
  | { readonly do: 'end' }

export interface Budget {
  readonly requests: number
  readonly windowMs: number
}

const MOST_UNANSWERED = 4
/** More would be chosen long before they leave. */
const MOST_LOOKS = 4
const FIRST_LOOK_MS = 1_000
const FASTEST_MS = 1_000
const SLOWEST_MS = 5_000
/** A run that has taken long is looked at less often: this share of its age. */
const SHARE_OF_AGE = 0.01
/** Above this a look is as good as sure to pay. */
const SURE = 0.9

export function nextOf(situation: Situation, budget: Budget): Next {
  const { toCreate, unanswered, isAnswered, flying, concurrency = Number.POSITIVE_INFINITY } = situation
  if (toCreate === 0 && unanswered === 0 && flying.length === 0) return { do: 'end' }
  const hasRoom = flying.length + unanswered < concurrency
  const mostUnanswered = isAnswered ? MOST_UNANSWERED : 1
  if (toCreate > 0 && hasRoom && unanswered < mostUnanswered) return { do: 'create' }
  // While creates are to be sent, every place under the limit is theirs.
  if (toCreate > 0 && hasRoom) return { do: 'rest' }
  return lookOf(situation, budget)
}

function lookOf({ flying, lastLookAtMs, nowMs }: Situation, { requests, windowMs }: Budget): Next {
  if (flying.filter(({ isLookedAt }) => isLookedAt).length >= MOST_LOOKS) return { do: 'rest' }
  let best: { readonly at: number; readonly odds: number; readonly lookedAtMs: number } | undefined
  let soonestMs = Number.POSITIVE_INFINITY
  for (const [at, run] of flying.entries()) {
    if (run.isLookedAt) continue
    const readyMs = readyAtMs(run)
    if (readyMs > nowMs) {
      soonestMs = Math.min(soonestMs, readyMs)
      continue
    }
    const { createdAtMs, lookedAtMs = createdAtMs, tookMs } = run
    const odds = chance(tookMs, lookedAtMs - createdAtMs, nowMs - createdAtMs)
    if (best === undefined || odds > best.odds || (odds === best.odds && lookedAtMs < best.lookedAtMs))
      best = { at, odds, lookedAtMs }
  }
  if (best === undefined)
    return soonestMs === Number.POSITIVE_INFINITY ? { do: 'rest' } : { do: 'wait', ms: soonestMs - nowMs }
  const spreadMs =
    best.odds >= SURE ? 0 : (lastLookAtMs ?? Number.NEGATIVE_INFINITY) + windowMs / requests - nowMs
  return spreadMs > 0 ? { do: 'wait', ms: spreadMs } : { do: 'look', at: best.at }
}

/** When a look at it may pay, and is no sooner after the one before than is decent. */
function readyAtMs({ createdAtMs, lookedAtMs, notBeforeMs, tookMs }: Flying): number {
  const firstMs = createdAtMs + Math.max(FIRST_LOOK_MS, tooYoungMs(tookMs))
  if (lookedAtMs === undefined) return Math.max(firstMs, notBeforeMs)
  const pauseMs = Math.min(SLOWEST_MS, Math.max(FASTEST_MS, SHARE_OF_AGE * (lookedAtMs - createdAtMs)))
  return Math.max(firstMs, lookedAtMs + pauseMs, notBeforeMs)
}
