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
 * * Polls the run that has most likely ended. If several are equally likely, the one polled longest ago.
 * * Runs may depend on the outputs of others, and the longest chain decides when the last run ends. So among
 *   creates, and among runs that have probably ended, the one with the longest chain of dependent runs goes
 *   first.
 * * A status request that will almost surely find an ended run is sent as soon as the rate limit allows.
 *   Others are spread evenly over the window once half of the rate limit is used: twenty at once and then
 *   none for ten seconds would find a run five seconds late on average.
 */

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

export interface RequestLimit {
  readonly requests: number
  readonly windowMs: number
}

const MAX_UNANSWERED_CREATES = 4
/**
 * Maximum number of status requests in the queue of the rate limiter. Choosing more would be too early: the best choice
 * changes while they wait.
 */
const MAX_PENDING_POLLS = 4
/** Minimum probability of an ended run at which its status request goes before the next create. */
const MIN_CHANCE_BEFORE_CREATE = 0.5
/** Minimum probability of an ended run at which its status request is not delayed. */
const MIN_CHANCE_UNSPREAD = 0.9
/** Maximum load at which status requests are not spread over the window. */
const MAX_UNSPREAD_LOAD = 0.5

const WAIT_FOR_ANSWER: Next = { do: 'wait', ms: Number.POSITIVE_INFINITY }

export function nextOf(situation: ScheduleState, limit: RequestLimit): Next {
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
function pollBetweenCreates(
  situation: ScheduleState,
  { requests, windowMs }: RequestLimit,
): Next | undefined {
  const { inFlight, createsSincePoll } = situation
  if (createsSincePoll === 0 || pendingPolls(inFlight) >= MAX_PENDING_POLLS) return undefined
  const { likeliest } = rank(situation)
  if (likeliest === undefined || likeliest.odds < MIN_CHANCE_BEFORE_CREATE) return undefined
  const isChained = likeliest.chainLength > situation.nextChainLength
  if (!isChained) {
    // Computes each duration list once: runs of a model share it.
    const lastTakesMs = Math.max(
      ...[...new Set(inFlight.map(({ durationsMs }) => durationsMs))].map(longDurationMs),
    )
    if (inFlight.length * windowMs <= 2 * lastTakesMs * requests) return undefined
  }
  return { do: 'poll', index: likeliest.index, isUrgent: true }
}

function nextPoll(situation: ScheduleState, { requests, windowMs }: RequestLimit): Next {
  const { inFlight, lastPollAtMs = Number.NEGATIVE_INFINITY, nowMs } = situation
  if (pendingPolls(inFlight) >= MAX_PENDING_POLLS) return WAIT_FOR_ANSWER
  const { likeliest, soonestDueMs } = rank(situation)
  if (likeliest === undefined) return { do: 'wait', ms: soonestDueMs - nowMs }
  const isUnspread = likeliest.odds >= MIN_CHANCE_UNSPREAD || situation.load <= MAX_UNSPREAD_LOAD
  if (!isUnspread && situation.load > 1 - reservedFor(inFlight))
    return { do: 'wait', ms: windowMs / requests }
  const spreadMs = isUnspread ? 0 : lastPollAtMs + windowMs / requests - nowMs
  return spreadMs > 0 ? { do: 'wait', ms: spreadMs } : { do: 'poll', index: likeliest.index, isUrgent: false }
}

/**
 * Share of the rate limit reserved for creates of runs that depend on these: status requests that find no ended run
 * would delay them.
 */
const reservedFor = (inFlight: readonly InFlight[]): number =>
  inFlight.filter((run) => run.chainLength > 0).length / (2 * inFlight.length)

interface Candidate {
  readonly index: number
  readonly odds: number
  readonly chainLength: number
  readonly polledAtMs: number
}

interface Ranking {
  /** Most likely ended among the runs that are due. */
  readonly likeliest: Candidate | undefined
  /** Time at which the first of the other runs is due. */
  readonly soonestDueMs: number
}

function rank({ inFlight, nowMs }: ScheduleState): Ranking {
  let likeliest: Ranking['likeliest']
  let soonestDueMs = Number.POSITIVE_INFINITY
  for (const [index, run] of inFlight.entries()) {
    if (run.isPolled) continue
    const { createdAtMs, polledAtMs = createdAtMs, durationsMs } = run
    const dueAtMs = Math.max(run.dueAtMs, createdAtMs + tooYoungMs(durationsMs))
    if (dueAtMs > nowMs) {
      soonestDueMs = Math.min(soonestDueMs, dueAtMs)
      continue
    }
    const odds = chance(durationsMs, polledAtMs - createdAtMs, nowMs - createdAtMs)
    const candidate = {
      index,
      odds,
      chainLength: odds < MIN_CHANCE_BEFORE_CREATE ? 0 : run.chainLength,
      polledAtMs,
    }
    if (likeliest === undefined || goesBefore(candidate, likeliest)) likeliest = candidate
  }
  return { likeliest, soonestDueMs }
}

function goesBefore(a: Candidate, b: Candidate): boolean {
  if (a.chainLength !== b.chainLength) return a.chainLength > b.chainLength
  return a.odds === b.odds ? a.polledAtMs < b.polledAtMs : a.odds > b.odds
}

// Probability that a run has ended, from the durations of other runs of its model and a guess with a long tail, which
// counts as much as one duration. Without durations, every time is equally likely.

/** Guessed median duration of a run: images take seconds, videos minutes. */
const GUESS_MS = 30_000

/** Guessed share of runs that take longer than `ageMs`: 1/2, 1/3, 1/4 … after one, two, three times `GUESS_MS`. */
const guessedSurvival = (ageMs: number): number => 1 / (1 + ageMs / GUESS_MS)

/** Share of runs that take longer than `ageMs`. */
export const survival = (durationsMs: readonly number[], ageMs: number): number =>
  (durationsMs.filter((each) => each > ageMs).length + guessedSurvival(ageMs)) / (durationsMs.length + 1)

/** Probability that a run has ended at `ageMs` if it was still running at `seenMs`. */
export const chance = (durationsMs: readonly number[], seenMs: number, ageMs: number): number =>
  ageMs <= seenMs ? 0 : 1 - survival(durationsMs, ageMs) / survival(durationsMs, seenMs)

/** Returns a duration that few runs exceed. */
function longDurationMs(durationsMs: readonly number[]): number {
  if (durationsMs.length < MIN_DURATIONS) return GUESS_MS
  const sorted = [...durationsMs].sort((a, b) => a - b)
  return sorted[Math.floor(0.9 * sorted.length)] ?? GUESS_MS
}

const MIN_DURATIONS = 3
/** A run may be faster than the fastest one so far, but rarely takes less than this share of its duration. */
const MIN_DURATION_SHARE = 0.7

/** Age before which a status request would not find an ended run. */
export const tooYoungMs = (durationsMs: readonly number[]): number =>
  durationsMs.length < MIN_DURATIONS ? 0 : MIN_DURATION_SHARE * Math.min(...durationsMs)

/** Delay after the expected end: a request just before the end would find the run a whole step late. */
const MARGIN_MS = 50

interface PollAges {
  /** Age at which the run was last seen running. */
  readonly seenMs: number
  readonly soonestMs: number
  readonly stepMs: number
}

/**
 * Returns the best age for the next status request, at least `soonestMs` and less than one step later. Status requests
 * of one run are one step apart. The age is chosen so that these requests follow the ends of other runs of the model
 * with the smallest total delay. Undefined if there are too few durations, or if all other runs had ended before
 * `seenMs`.
 */
export function bestAgeMs(
  durationsMs: readonly number[],
  { seenMs, soonestMs, stepMs }: PollAges,
): number | undefined {
  if (durationsMs.length < MIN_DURATIONS) return undefined
  const ends = durationsMs.map((each) => each + MARGIN_MS).filter((end) => end > seenMs)
  if (ends.length === 0) return undefined
  const lateBy = (ageMs: number): number =>
    ends.reduce((sum, end) => sum + ageMs + Math.max(0, Math.ceil((end - ageMs) / stepMs)) * stepMs - end, 0)
  const candidates = [soonestMs, ...ends.map((end) => soonestMs + (Math.max(0, end - soonestMs) % stepMs))]
  return candidates.reduce((best, each) => (lateBy(each) < lateBy(best) ? each : best))
}
