/** What is usual for a model, from the runs that were seen to their end. Pure. */

export interface Usual {
  readonly medianMs: number
  /** The middle half lies between these. */
  readonly fromMs: number
  readonly toMs: number
  readonly runs: number
}

/** One run says little about the next. */
const FEWEST_RUNS = 3
/** Services become faster and slower: older runs say less. */
export const MOST_RUNS = 25

export function usualOf(tookMs: readonly number[]): Usual | undefined {
  if (tookMs.length < FEWEST_RUNS) return undefined
  const sorted = [...tookMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round((sorted.length - 1) * share)] ?? 0
  return { medianMs: at(0.5), fromMs: at(0.25), toMs: at(0.75), runs: sorted.length }
}
