/**
 * Chooses the next request. Pure. N runs need at least 2N requests, so at 20 requests in 10 s the rate limit bounds the
 * total time, and no request may be wasted:
 *
 * * Creates go first: a run that is created earlier ends earlier. Until one is accepted, they go one at a time:
 *   an invalid key or a service that is down then costs one request and not twenty. After that, at most four
 *   creates are in flight.
 * * Between creates, polls a run that has probably ended, so that results arrive early. Does so only while
 *   more runs need a status request than the rate limit allows during the duration of the last run: these
 *   status requests delay nothing.
 * * Polls the run that is most overdue. A run has probably ended when it is older than the median of the other runs of
 *   its model, and twice as old as when it was last seen running.
 * * Runs may depend on the outputs of others, and the longest chain decides when the last run ends. So among
 *   creates, and among runs that have probably ended, the one with the longest chain of dependent runs goes
 *   first.
 * * A status request for a run that has probably ended is sent as soon as the rate limit allows. Others are spread evenly
 *   over the window once half of the rate limit is used: twenty at once and then none for ten seconds would find a run
 *   five seconds late on average.
 */
import type { Limit } from '../limiter/window.js'

/** A run that has not ended, as far as this command knows. Times are monotonic, in milliseconds. */
export interface InFlight {
  readonly createdAtMs: number
  /** Time of the last status request. Undefined before the first one. */
  readonly polledAtMs: number | undefined
  /** Earliest time of the next status request. */
  readonly dueAtMs: number
  /** Whether a status request is in flight. */
  readonly isPolled: boolean
  /** Durations of other runs of its model. */
  readonly durationsMs: readonly number[]
  /** Length of the longest chain of runs that wait for its output. */
  readonly chainLength: number
}

export interface ScheduleState {
  /** Number of creates not sent yet. */
  readonly toCreate: number
  /** Length of the longest chain of runs that wait for the output of the next create. */
  readonly nextChainLength: number
  /**
   * Whether runs may be added later: the runs that they depend on have ended, and their outputs are being downloaded.
   */
  readonly isExpecting: boolean
  readonly unanswered: number
  /** Whether any create of this command was accepted. Until then creates are sent one at a time. */
  readonly isAccepted: boolean
  readonly inFlight: readonly InFlight[]
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency: number | undefined
  readonly lastPollAtMs: number | undefined
  readonly createsSincePoll: number
  /** Used share of the key's rate limit, 0 to 1. */
  readonly load: number
  readonly nowMs: number
}

export type Next =
  | { readonly do: 'create' }
  /** `index`: position in `inFlight`. `isUrgent`: uses the priority of creates in the rate limiter. */
  | { readonly do: 'poll'; readonly index: number; readonly isUrgent: boolean }
  /** Infinity: waits for the next response. */
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'end' }

const MAX_UNANSWERED_CREATES = 4
/**
 * Maximum number of status requests in the queue of the rate limiter. Choosing more would be too early: the best choice
 * changes while they wait.
 */
const MAX_PENDING_POLLS = 4
/** Maximum load at which status requests are not spread over the window. */
const MAX_UNSPREAD_LOAD = 0.5

const WAIT_FOR_ANSWER: Next = { do: 'wait', ms: Number.POSITIVE_INFINITY }

export function nextOf(situation: ScheduleState, limit: Limit): Next {
  const { toCreate, unanswered, isAccepted, inFlight, concurrency = Number.POSITIVE_INFINITY } = situation
  if (toCreate === 0 && unanswered === 0 && inFlight.length === 0)
    return situation.isExpecting ? WAIT_FOR_ANSWER : { do: 'end' }
  const isCreating = toCreate > 0 && inFlight.length + unanswered < concurrency
  if (!isCreating) return nextPoll(situation, limit)
  if (unanswered >= (isAccepted ? MAX_UNANSWERED_CREATES : 1)) return WAIT_FOR_ANSWER
  return pollBetweenCreates(situation, limit) ?? { do: 'create' }
}

const pendingPolls = (inFlight: readonly InFlight[]): number =>
  inFlight.filter(({ isPolled }) => isPolled).length

/** Alternates creates and status requests. */
function pollBetweenCreates(situation: ScheduleState, { requests, windowMs }: Limit): Next | undefined {
  const { inFlight, createsSincePoll } = situation
  if (createsSincePoll === 0 || pendingPolls(inFlight) >= MAX_PENDING_POLLS) return undefined
  const { first, slowestMs } = rank(situation)
  if (first === undefined || first.overdue < 1) return undefined
  const isChained = first.chainLength > situation.nextChainLength
  if (!isChained && inFlight.length * windowMs <= 2 * slowestMs * requests) return undefined
  return { do: 'poll', index: first.index, isUrgent: true }
}

function nextPoll(situation: ScheduleState, { requests, windowMs }: Limit): Next {
  const { inFlight, lastPollAtMs = Number.NEGATIVE_INFINITY, load, nowMs } = situation
  if (pendingPolls(inFlight) >= MAX_PENDING_POLLS) return WAIT_FOR_ANSWER
  const { first, soonestDueMs } = rank(situation)
  if (first === undefined) return { do: 'wait', ms: soonestDueMs - nowMs }
  const stepMs = windowMs / requests
  if (load > MAX_UNSPREAD_LOAD && first.overdue < 1) {
    if (load > 1 - reservedFor(inFlight)) return { do: 'wait', ms: stepMs }
    const spreadMs = lastPollAtMs + stepMs - nowMs
    if (spreadMs > 0) return { do: 'wait', ms: spreadMs }
  }
  return { do: 'poll', index: first.index, isUrgent: false }
}

/**
 * Share of the rate limit reserved for creates of runs that depend on these: status requests that find no ended run
 * would delay them.
 */
const reservedFor = (inFlight: readonly InFlight[]): number =>
  inFlight.filter((run) => run.chainLength > 0).length / (2 * inFlight.length)

interface Candidate {
  readonly index: number
  /** Grows from 0 at the last status request. From 1 on, the run has probably ended. */
  readonly overdue: number
  readonly chainLength: number
  readonly polledAtMs: number
}

interface Ranking {
  /** The run to poll first, among those that are due. */
  readonly first: Candidate | undefined
  /** Time at which the first of the other runs is due. */
  readonly soonestDueMs: number
  /** Duration that few runs in flight exceed. */
  readonly slowestMs: number
}

function rank({ inFlight, nowMs }: ScheduleState): Ranking {
  let first: Candidate | undefined
  let soonestDueMs = Number.POSITIVE_INFINITY
  let slowestMs = 0
  // Runs of a model share the list of durations.
  const paces = new Map<readonly number[], Pace>()
  for (const [index, run] of inFlight.entries()) {
    const { createdAtMs, polledAtMs = createdAtMs, durationsMs } = run
    const pace = paces.get(durationsMs) ?? paceOf(durationsMs)
    paces.set(durationsMs, pace)
    slowestMs = Math.max(slowestMs, pace.slowMs)
    if (run.isPolled) continue
    const dueAtMs = Math.max(run.dueAtMs, createdAtMs + pace.tooYoungMs)
    if (dueAtMs > nowMs) {
      soonestDueMs = Math.min(soonestDueMs, dueAtMs)
      continue
    }
    const seenMs = polledAtMs - createdAtMs
    const overdue = (nowMs - polledAtMs) / Math.max(pace.medianMs - seenMs, seenMs)
    const candidate = { index, overdue, chainLength: overdue < 1 ? 0 : run.chainLength, polledAtMs }
    if (first === undefined || goesBefore(candidate, first)) first = candidate
  }
  return { first, soonestDueMs, slowestMs }
}

function goesBefore(a: Candidate, b: Candidate): boolean {
  if (a.chainLength !== b.chainLength) return a.chainLength > b.chainLength
  return a.overdue === b.overdue ? a.polledAtMs < b.polledAtMs : a.overdue > b.overdue
}

/** How long runs of a model take. */
interface Pace {
  /** Age before which a status request would not find an ended run. */
  readonly tooYoungMs: number
  readonly medianMs: number
  /** Duration that few runs exceed. */
  readonly slowMs: number
}

const MIN_DURATIONS = 3
/** Guessed median duration of a run: images take seconds, videos minutes. */
const GUESS_MS = 30_000
/** A run may be faster than the fastest one so far, but rarely takes less than this share of its duration. */
const MIN_DURATION_SHARE = 0.7

export function paceOf(durationsMs: readonly number[]): Pace {
  if (durationsMs.length < MIN_DURATIONS) return { tooYoungMs: 0, medianMs: GUESS_MS, slowMs: GUESS_MS }
  const sorted = [...durationsMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * sorted.length)] ?? GUESS_MS
  return { tooYoungMs: MIN_DURATION_SHARE * at(0), medianMs: at(0.5), slowMs: at(0.9) }
}
