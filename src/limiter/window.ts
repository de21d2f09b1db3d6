/**
 * The arithmetic of a sliding window. Pure.
 *
 * The service counts a request at some instant between its sending and its response, and only the service knows
 * which. So a request holds its slot from the grant until one window after its response: then, however late a
 * request arrives, the service never counts more than `requests` of them in any `windowMs`. Counting from the grant
 * would be wrong: a slow first request and a fast twenty-first could fall into one window. The margin is each
 * request's round trip, which costs 1 % of throughput at 100 ms.
 */

export interface Limit {
  readonly requests: number
  readonly windowMs: number
}

export interface Slot {
  /** When the request was answered or abandoned, in monotonic milliseconds; undefined while it is in flight. */
  settledAtMs: number | undefined
}

const hasExpired = (slot: Slot, limit: Limit, nowMs: number): boolean =>
  slot.settledAtMs !== undefined && slot.settledAtMs + limit.windowMs <= nowMs

/** The slots that still count. */
export const countingSlots = <Held extends Slot>(
  slots: readonly Held[],
  limit: Limit,
  nowMs: number,
): readonly Held[] => slots.filter((slot) => !hasExpired(slot, limit, nowMs))

/**
 * How long a request with `ahead` others before it has to wait: 0 for not at all, Infinity while only a response
 * can free a slot.
 */
export function waitMs(slots: readonly Slot[], limit: Limit, nowMs: number, ahead = 0): number {
  const counting = countingSlots(slots, limit, nowMs)
  const surplus = counting.length + ahead - limit.requests
  if (surplus < 0) return 0
  const frees = counting.map(({ settledAtMs }) =>
    settledAtMs === undefined ? Number.POSITIVE_INFINITY : settledAtMs + limit.windowMs - nowMs,
  )
  return frees.sort((a, b) => a - b)[surplus] ?? Number.POSITIVE_INFINITY
}
