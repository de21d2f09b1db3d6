/** What is usual for a model, from the runs that were seen to their end. Pure. */

export interface TypicalDuration {
  readonly medianMs: number
  /** The middle half lies between these. */
  readonly fromMs: number
  readonly toMs: number
  readonly runs: number
}

/** One run says little about the next. */
const MIN_RUNS = 3
/** Services become faster and slower: older runs say less. */
export const MAX_RUNS = 25

export function typicalDurationOf(tookMs: readonly number[]): TypicalDuration | undefined {
  if (tookMs.length < MIN_RUNS) return undefined
  const sorted = [...tookMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round((sorted.length - 1) * share)] ?? 0
  return { medianMs: at(0.5), fromMs: at(0.25), toMs: at(0.75), runs: sorted.length }
}
