/** Waiting times, pure: a curve, a server's wish, and jitter apart from both. */

/** The wait after try `number` (from 1) along a ladder whose last step repeats. */
export const stepOf = (ladderMs: readonly number[], number: number): number =>
  ladderMs[Math.min(number, ladderMs.length) - 1] ?? 0

/** Between `min` and `max`; `random` is in [0, 1). */
export const jittered = (range: { readonly min: number; readonly max: number }, random: number): number =>
  Math.round(range.min + (range.max - range.min) * random)

/**
 * `Retry-After` in milliseconds: seconds or an HTTP date (RFC 9110, 10.2.3). Undefined when absent or unreadable,
 * never more than `mostMs`.
 */
export function retryAfterMs(header: string | undefined, nowMs: number, mostMs: number): number | undefined {
  if (header === undefined) return undefined
  const value = header.trim()
  // `Date.parse` makes a date of almost anything that ends in a number; a real one holds a time of day.
  const date = /\d\d:\d\d:\d\d/.test(value) ? Date.parse(value) : Number.NaN
  const wish = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1_000 : date - nowMs
  return Number.isNaN(wish) ? undefined : Math.min(Math.max(0, wish), mostMs)
}
