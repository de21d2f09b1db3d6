/**
 * Decides the next request, pure. With N runs and 20 requests in 10 s no client can finish before 2N requests fit, so
 * no request is spent that cannot pay:
 *
 * * Creates go first: a run that is created earlier ends earlier. The first goes alone until it is answered, since a refused
 *   key or an empty account then costs one request and not twenty; after it at most four are unanswered.
 * * Between creates, the status of a run that has probably ended is requested, so that results arrive early;
 * but only while more runs
 *   wait for their status request than fit into the time that the last run to be created will take. That costs nothing.
 * * Status requests go to the run that has most likely ended; where that is equal, to the one polled longest ago.
 * * Runs may wait for the outputs of others. The longest chain decides when the last run ends: of the creates, and of the runs
 *   that have probably ended, the one with the longest chain behind it goes first.
 * * Where a status request will almost certainly pay, only the limit decides when. Otherwise, once half of the budget is in
 *   use, they are spread evenly over the window: twenty at once and then none for ten seconds would find a run
 * five seconds late on average.
 */

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
  readonly chainLength: number
}

export interface ScheduleState {
  /** Creates that are still to be sent. */
  readonly toCreate: number
  /** Length of the longest chain of runs that waits for the next one to be created. */
  readonly nextChainLength: number
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
  /** `index`: in `inFlight`. An urgent request has its turn among the creates. */
  | { readonly do: 'poll'; readonly index: number; readonly isUrgent: boolean }
  /** Infinity: only an answer can change anything. */
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'end' }

export interface RequestLimit {
  readonly requests: number
  readonly windowMs: number
}

const MAX_UNANSWERED_CREATES = 4
/** More would be chosen long before they are sent. */
const MAX_PENDING_POLLS = 4
/** From this chance on, a status request goes before the next create. */
const LIKELY = 0.5
/** From this chance on, it need not be spread. */
const SURE = 0.9
/** Up to this load, status requests need not be spread either. */
const MAX_UNSPREAD_LOAD = 0.5

const WAIT_FOR_ANSWER: Next = { do: 'wait', ms: Number.POSITIVE_INFINITY }

export function nextOf(situation: ScheduleState, limit: RequestLimit): Next {
  const { toCreate, unanswered, isAnswered, inFlight, concurrency = Number.POSITIVE_INFINITY } = situation
  if (toCreate === 0 && unanswered === 0 && inFlight.length === 0)
    return situation.isExpecting ? WAIT_FOR_ANSWER : { do: 'end' }
  const isCreating = toCreate > 0 && inFlight.length + unanswered < concurrency
  if (!isCreating) return nextPoll(situation, limit)
  if (unanswered >= (isAnswered ? MAX_UNANSWERED_CREATES : 1)) return WAIT_FOR_ANSWER
  return pollBetweenCreates(situation, limit) ?? { do: 'create' }
}

const pendingPolls = (inFlight: readonly InFlight[]): number =>
  inFlight.filter(({ isPolled }) => isPolled).length

/** One create and one status request in turn. */
function pollBetweenCreates(
  situation: ScheduleState,
  { requests, windowMs }: RequestLimit,
): Next | undefined {
  const { inFlight, createsSincePoll } = situation
  if (createsSincePoll === 0 || pendingPolls(inFlight) >= MAX_PENDING_POLLS) return undefined
  const { likeliest } = rank(situation)
  if (likeliest === undefined || likeliest.odds < LIKELY) return undefined
  const isChained = likeliest.chainLength > situation.nextChainLength
  if (!isChained) {
    // Runs of a model share their durations.
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
  const isUnspread = likeliest.odds >= SURE || situation.load <= MAX_UNSPREAD_LOAD
  if (!isUnspread && situation.load > 1 - reservedFor(inFlight))
    return { do: 'wait', ms: windowMs / requests }
  const spreadMs = isUnspread ? 0 : lastPollAtMs + windowMs / requests - nowMs
  return spreadMs > 0 ? { do: 'wait', ms: spreadMs } : { do: 'poll', index: likeliest.index, isUrgent: false }
}

/**
 * The share of the budget that is kept for the creates of runs that wait for these: status requests that find nothing
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
  /** Of the runs that are due. */
  readonly likeliest: Candidate | undefined
  /** When the first of the others is due. */
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
    const candidate = { index, odds, chainLength: odds < LIKELY ? 0 : run.chainLength, polledAtMs }
    if (likeliest === undefined || goesBefore(candidate, likeliest)) likeliest = candidate
  }
  return { likeliest, soonestDueMs }
}

function goesBefore(a: Candidate, b: Candidate): boolean {
  if (a.chainLength !== b.chainLength) return a.chainLength > b.chainLength
  return a.odds === b.odds ? a.polledAtMs < b.polledAtMs : a.odds > b.odds
}

// The probability that a run has ended, from the durations of others of its model and a guess with a long tail
// that counts as much as
// one of them. Without durations every moment is as likely.

/** Half of all runs end within this, when nothing is known: images take seconds, videos minutes. */
const GUESS_MS = 30_000

/** The share of guessed runs that take longer: 1/2, 1/3, 1/4 … after one, two, three times `GUESS_MS`. */
const guessed = (ageMs: number): number => 1 / (1 + ageMs / GUESS_MS)

/** The share of runs that take longer than `ageMs`. */
export const survival = (durationsMs: readonly number[], ageMs: number): number =>
  (durationsMs.filter((each) => each > ageMs).length + guessed(ageMs)) / (durationsMs.length + 1)

/** The probability that a run has ended at `ageMs`, given that it had not at `seenMs`. */
export const chance = (durationsMs: readonly number[], seenMs: number, ageMs: number): number =>
  ageMs <= seenMs ? 0 : 1 - survival(durationsMs, ageMs) / survival(durationsMs, seenMs)

/** A duration that few runs exceed. */
function longDurationMs(durationsMs: readonly number[]): number {
  if (durationsMs.length < MIN_DURATIONS) return GUESS_MS
  const sorted = [...durationsMs].sort((a, b) => a - b)
  return sorted[Math.floor(0.9 * sorted.length)] ?? GUESS_MS
}

const MIN_DURATIONS = 3
/** A run may be faster than the fastest one so far, but hardly by more than this share. */
const EARLIEST = 0.7

/** Before that age a status request cannot pay. */
export const tooYoungMs = (durationsMs: readonly number[]): number =>
  durationsMs.length < MIN_DURATIONS ? 0 : EARLIEST * Math.min(...durationsMs)

/** A request that arrives just before the end of the run costs a whole further step. */
const MARGIN_MS = 50

interface PollAges {
  /** At this age the run was seen running. */
  readonly seenMs: number
  readonly soonestMs: number
  readonly stepMs: number
}

/**
 * The age, at least `soonestMs` and less than a step later, at which the next status request is best sent. Status
 * requests of one run are a comb with teeth a step apart; it is shifted so that its teeth fall right behind the ages
 * at which other runs of the model ended. Undefined where too little is known, or every other run had ended by `seenMs`.
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
