/**
 * How likely it is that a run has ended by now, pure: from how long others of its model took, and a guess of long tail
 * that counts as much as one of them. With nothing learned every moment may be the one.
 */

/** Half of all runs end within this, when nothing is known: images take seconds, videos minutes. */
const GUESS_MS = 30_000

/** What is left of the guess after so long: 1/2, 1/3, 1/4 … after one, two, three times its length. */
const guessed = (ageMs: number): number => 1 / (1 + ageMs / GUESS_MS)

/** The share of runs that take longer than `ageMs`. */
export const survival = (tookMs: readonly number[], ageMs: number): number =>
  (tookMs.filter((took) => took > ageMs).length + guessed(ageMs)) / (tookMs.length + 1)

/** That a run has ended by `ageMs`, given that it had not at `seenMs`. */
export const chance = (tookMs: readonly number[], seenMs: number, ageMs: number): number =>
  ageMs <= seenMs ? 0 : 1 - survival(tookMs, ageMs) / survival(tookMs, seenMs)

const FEWEST = 3
/** No run was ever done so much earlier than the fastest one. */
const EARLIEST = 0.7

/** Before that age a look cannot pay. */
export const tooYoungMs = (tookMs: readonly number[]): number =>
  tookMs.length < FEWEST ? 0 : EARLIEST * Math.min(...tookMs)
