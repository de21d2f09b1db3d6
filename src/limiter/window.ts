/**
 * The arithmetic of a sliding window, pure.
 *
 * A service counts a request at some instant between its sending and its answer, and nobody but the service knows
 * which. So a request holds its place from the moment it is granted until one window after it was answered: then,
 * however late any request arrives, the service never finds more than `requests` of them in any `windowMs`.
 * Counting from the grant instead would let a slow first request and a fast twenty-first fall into one window. The
 * margin is thus each request's own round trip, and costs that much of throughput: 1 % at 100 ms.
 */

export interface Limit {
  readonly requests: number
  readonly windowMs: number
}

export interface Slot {
  /** When the request was answered or given up, in monotonic milliseconds; undefined while it is on its way. */
  settledAtMs: number | undefined
}

const isFree = (slot: Slot, limit: Limit, nowMs: number): boolean =>
  slot.settledAtMs !== undefined && slot.settledAtMs + limit.windowMs <= nowMs

/** The places that still count. */
export const held = <Held extends Slot>(
  slots: readonly Held[],
  limit: Limit,
  nowMs: number,
): readonly Held[] => slots.filter((place) => !isFree(place, limit, nowMs))

/**
 * How long until one may leave who has `ahead` others before it: 0 for now, Infinity while only an answer can free
 * a place.
 */
export function waitMs(slots: readonly Slot[], limit: Limit, nowMs: number, ahead = 0): number {
  const counting = held(slots, limit, nowMs)
  const surplus = counting.length + ahead - limit.requests
  if (surplus < 0) return 0
  const frees = counting.map(({ settledAtMs }) =>
    settledAtMs === undefined ? Number.POSITIVE_INFINITY : settledAtMs + limit.windowMs - nowMs,
  )
  return frees.sort((a, b) => a - b)[surplus] ?? Number.POSITIVE_INFINITY
}
