/** The typical duration of a model's runs, from the durations of its latest runs. Pure. */

export interface TypicalDuration {
  readonly medianMs: number
  /** First quartile (`fromMs`) and third quartile (`toMs`). */
  readonly fromMs: number
  readonly toMs: number
  readonly runs: number
}

/** Minimum number of runs for an estimate. */
const MIN_RUNS = 3
/** Maximum number of runs in an estimate. Only the latest runs count, because the speed of services changes. */
export const MAX_RUNS = 25

/** Undefined if there are too few runs. */
export function typicalDurationOf(tookMs: readonly number[]): TypicalDuration | undefined {
  if (tookMs.length < MIN_RUNS) return undefined
  const sorted = [...tookMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round((sorted.length - 1) * share)] ?? 0
  return { medianMs: at(0.5), fromMs: at(0.25), toMs: at(0.75), runs: sorted.length }
}
