/**
 * How likely it is that a run has ended by now, pure: from how long others of its model took, and a guess with a long
 * tail that counts as much as one of them. With nothing learned every moment may be the one.
 */

/** Half of all runs end within this, when nothing is known: images take seconds, videos minutes. */
const GUESS_MS = 30_000

/** The share of guessed runs that take longer: 1/2, 1/3, 1/4 … after one, two, three times `GUESS_MS`. */
const guessed = (ageMs: number): number => 1 / (1 + ageMs / GUESS_MS)

/** The share of runs that take longer than `ageMs`. */
export const survival = (durationsMs: readonly number[], ageMs: number): number =>
  (durationsMs.filter((each) => each > ageMs).length + guessed(ageMs)) / (durationsMs.length + 1)

/** That a run has ended by `ageMs`, given that it had not at `seenMs`. */
export const chance = (durationsMs: readonly number[], seenMs: number, ageMs: number): number =>
  ageMs <= seenMs ? 0 : 1 - survival(durationsMs, ageMs) / survival(durationsMs, seenMs)

/** A duration that few runs exceed. */
export function longDurationMs(durationsMs: readonly number[]): number {
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

export interface PollAges {
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
