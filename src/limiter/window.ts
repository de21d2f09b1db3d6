/**
 * The arithmetic of a sliding window. Pure.
 *
 * The service counts a request at some instant between its sending and its response, and only the service knows this
 * instant. So a request keeps its slot from the grant until one window after its response. Then the service never
 * counts more than `requests` requests in any `windowMs`, even if a request arrives late. Counting from the grant would
 * be wrong: a slow first request and a fast twenty-first request could fall into one window. The cost is the round trip
 * of each request: 1 % of throughput at 100 ms.
 */

export interface Limit {
  readonly requests: number
  readonly windowMs: number
}

export interface Slot {
  /**
   * Time at which the request was answered or abandoned, in monotonic milliseconds. Undefined while it is in flight.
   */
  settledAtMs: number | undefined
}

const hasExpired = (slot: Slot, limit: Limit, nowMs: number): boolean =>
  slot.settledAtMs !== undefined && slot.settledAtMs + limit.windowMs <= nowMs

/** Returns the slots that still count. */
export const countingSlots = <Held extends Slot>(
  slots: readonly Held[],
  limit: Limit,
  nowMs: number,
): readonly Held[] => slots.filter((slot) => !hasExpired(slot, limit, nowMs))

/**
 * Returns how long a request must wait that leaves `spare` slots free. 0: no wait. Infinity: a slot becomes free only
 * after a response.
 */
export function waitMs(slots: readonly Slot[], limit: Limit, nowMs: number, spare = 0): number {
  const counting = countingSlots(slots, limit, nowMs)
  const surplus = counting.length + spare - limit.requests
  if (surplus < 0) return 0
  const frees = counting.map(({ settledAtMs }) =>
    settledAtMs === undefined ? Number.POSITIVE_INFINITY : settledAtMs + limit.windowMs - nowMs,
  )
  return frees.sort((a, b) => a - b)[surplus] ?? Number.POSITIVE_INFINITY
}
