/**
 * What to ask the service next, pure. With N runs and 20 requests in 10 s no client can finish before 2N requests fit, so
 * no request is spent that cannot pay:
 *
 * * Creates go first: a run that is created earlier ends earlier. The first goes alone until it is answered, since a refused
 *   key or an empty account then costs one request and not twenty; after it at most four are unanswered.
 * * Between creates a run that has probably ended is asked about, so that results arrive meanwhile; but only while more runs
 *   wait for their status request than fit into the time that the last run to be created will take. That costs nothing.
 * * Status requests go to the run that has most likely ended; where that is equal, to the one not asked about for longest.
 * * Runs may wait for the outputs of others. The longest chain decides when the last run ends: of the creates, and of the runs
 *   that have probably ended, the one with the longest chain behind it goes first.
 * * Where a status request will almost certainly pay, only the limit decides when. Otherwise, once half of the budget is in
 *   use, they are spread evenly over the window: twenty at once and then none for ten seconds would find a run five seconds late on average.
 */
import { chance, longDurationMs, tooYoungMs } from './likelihood.js'

/** A run that exists and has not ended, as far as is known. Instants are monotonic. */
export interface InFlight {
  readonly createdAtMs: number
  /** Undefined before its first status request. */
  readonly polledAtMs: number | undefined
  /** The next status request is sent then or later. */
  readonly dueAtMs: number
  /** A status request is under way. */
  readonly isPolled: boolean
  /** How long others of its model took. */
  readonly durationsMs: readonly number[]
  /** Length of the longest chain of runs that waits for it. */
  readonly behind: number
}

export interface ScheduleState {
  /** Creates that are still to be sent. */
  readonly toCreate: number
  /** Length of the longest chain of runs that waits for the next one to be created. */
  readonly behindNext: number
  /** Whether further runs may come: their sources have ended, and are being delivered. */
  readonly isExpecting: boolean
  readonly unanswered: number
  /** Whether any create of this command was answered. */
  readonly isAnswered: boolean
  readonly inFlight: readonly InFlight[]
  /** The most runs in flight at once; undefined: no cap. */
  readonly concurrency: number | undefined
  readonly lastPollAtMs: number | undefined
  readonly createsSincePoll: number
  /** The share of the key's budget that is in use, 0 to 1. */
  readonly load: number
  readonly nowMs: number
}

export type Next =
  | { readonly do: 'create' }
  /** `at`: its index in `inFlight`. An urgent one has its turn among the creates. */
  | { readonly do: 'poll'; readonly at: number; readonly isUrgent: boolean }
  /** Infinity: only an answer can change anything. */
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'end' }

export interface Budget {
  readonly requests: number
  readonly windowMs: number
}

const MAX_UNANSWERED = 4
/** More would be chosen long before they are sent. */
const MAX_POLLS = 4
/** From this chance on, a status request goes before the next create. */
const LIKELY = 0.5
/** From this chance on, it need not be spread. */
const SURE = 0.9
/** Up to this load, status requests need not be spread either. */
const MAX_FREE_LOAD = 0.5

const WAIT_FOR_ANSWER: Next = { do: 'wait', ms: Number.POSITIVE_INFINITY }

export function nextOf(situation: ScheduleState, budget: Budget): Next {
  const { toCreate, unanswered, isAnswered, inFlight, concurrency = Number.POSITIVE_INFINITY } = situation
  if (toCreate === 0 && unanswered === 0 && inFlight.length === 0)
    return situation.isExpecting ? WAIT_FOR_ANSWER : { do: 'end' }
  const isCreating = toCreate > 0 && inFlight.length + unanswered < concurrency
  if (!isCreating) return nextPoll(situation, budget)
  if (unanswered >= (isAnswered ? MAX_UNANSWERED : 1)) return WAIT_FOR_ANSWER
  return pollBetweenCreates(situation, budget) ?? { do: 'create' }
}

const pollsUnderWay = (inFlight: readonly InFlight[]): number =>
  inFlight.filter(({ isPolled }) => isPolled).length

/** One create and one status request in turn. */
function pollBetweenCreates(situation: ScheduleState, { requests, windowMs }: Budget): Next | undefined {
  const { inFlight, createsSincePoll } = situation
  if (createsSincePoll === 0 || pollsUnderWay(inFlight) >= MAX_POLLS) return undefined
  const { likeliest } = rank(situation)
  if (likeliest === undefined || likeliest.odds < LIKELY) return undefined
  const isChained = likeliest.behind > situation.behindNext
  if (!isChained) {
    // Runs of a model share their durations.
    const lastTakesMs = Math.max(
      ...[...new Set(inFlight.map(({ durationsMs }) => durationsMs))].map(longDurationMs),
    )
    if (inFlight.length * windowMs <= 2 * lastTakesMs * requests) return undefined
  }
  return { do: 'poll', at: likeliest.at, isUrgent: true }
}

function nextPoll(situation: ScheduleState, { requests, windowMs }: Budget): Next {
  const { inFlight, lastPollAtMs = Number.NEGATIVE_INFINITY, nowMs } = situation
  if (pollsUnderWay(inFlight) >= MAX_POLLS) return WAIT_FOR_ANSWER
  const { likeliest, soonestDueMs } = rank(situation)
  if (likeliest === undefined) return { do: 'wait', ms: soonestDueMs - nowMs }
  const isFree = likeliest.odds >= SURE || situation.load <= MAX_FREE_LOAD
  if (!isFree && situation.load > 1 - reservedFor(inFlight)) return { do: 'wait', ms: windowMs / requests }
  const spreadMs = isFree ? 0 : lastPollAtMs + windowMs / requests - nowMs
  return spreadMs > 0 ? { do: 'wait', ms: spreadMs } : { do: 'poll', at: likeliest.at, isUrgent: false }
}

/**
 * The share of the budget that is kept for the creates of runs that wait for these: status requests that find nothing
 * would delay them.
 */
const reservedFor = (inFlight: readonly InFlight[]): number =>
  inFlight.filter((run) => run.behind > 0).length / (2 * inFlight.length)

interface Candidate {
  readonly at: number
  readonly odds: number
  readonly behind: number
  readonly polledAtMs: number
}

interface Ranking {
  /** Of the runs that are due. */
  readonly likeliest: Candidate | undefined
  /** When the first of the others is due. */
  readonly soonestDueMs: number
}

function rank({ inFlight, nowMs }: ScheduleState): Ranking {
  let likeliest: Ranking['likeliest']
  let soonestDueMs = Number.POSITIVE_INFINITY
  for (const [at, run] of inFlight.entries()) {
    if (run.isPolled) continue
    const { createdAtMs, polledAtMs = createdAtMs, durationsMs } = run
    const dueAtMs = Math.max(run.dueAtMs, createdAtMs + tooYoungMs(durationsMs))
    if (dueAtMs > nowMs) {
      soonestDueMs = Math.min(soonestDueMs, dueAtMs)
      continue
    }
    const odds = chance(durationsMs, polledAtMs - createdAtMs, nowMs - createdAtMs)
    const candidate = { at, odds, behind: odds < LIKELY ? 0 : run.behind, polledAtMs }
    if (likeliest === undefined || goesBefore(candidate, likeliest)) likeliest = candidate
  }
  return { likeliest, soonestDueMs }
}

function goesBefore(a: Candidate, b: Candidate): boolean {
  if (a.behind !== b.behind) return a.behind > b.behind
  return a.odds === b.odds ? a.polledAtMs < b.polledAtMs : a.odds > b.odds
}
