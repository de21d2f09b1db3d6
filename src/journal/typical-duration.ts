/** The typical duration of a model's runs, from those that were observed to their end. Pure. */

export interface TypicalDuration {
  readonly medianMs: number
  /** The first and third quartile. */
  readonly fromMs: number
  readonly toMs: number
  readonly runs: number
}

/** Fewer say little about the next run. */
const MIN_RUNS = 3
/** Only the latest count, since services become faster and slower. */
export const MAX_RUNS = 25

export function typicalDurationOf(tookMs: readonly number[]): TypicalDuration | undefined {
  if (tookMs.length < MIN_RUNS) return undefined
  const sorted = [...tookMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round((sorted.length - 1) * share)] ?? 0
  return { medianMs: at(0.5), fromMs: at(0.25), toMs: at(0.75), runs: sorted.length }
}
