/** When the page asks for news. Pure. */

export interface PollState {
  readonly isVisible: boolean
  /** Whether a run that the page shows is unfinished. */
  readonly hasUnfinished: boolean
  /** Failed requests since the last response. */
  readonly failures: number
  /** What the last response asked to wait. */
  readonly retryAfterMs?: number | undefined
}

export const UNFINISHED_POLL_MS = 2_000
/** While everything is finished: runs that are created elsewhere appear. */
export const FINISHED_POLL_MS = 5_000
const MAX_POLL_MS = 30_000

/** The wait before the next request; undefined while the page is hidden. */
export function pollDelayMs({
  isVisible,
  hasUnfinished,
  failures,
  retryAfterMs = 0,
}: PollState): number | undefined {
  if (!isVisible) return undefined
  const interval = hasUnfinished ? UNFINISHED_POLL_MS : FINISHED_POLL_MS
  const grown = failures === 0 ? interval : Math.min(MAX_POLL_MS, UNFINISHED_POLL_MS * 2 ** (failures - 1))
  return Math.max(grown, retryAfterMs)
}
