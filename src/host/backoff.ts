/** Waiting times between retries. Pure. */

/** The wait after try `number` (from 1); the last step repeats. */
export const stepOf = (stepsMs: readonly number[], number: number): number =>
  stepsMs[Math.min(number, stepsMs.length) - 1] ?? 0

/** Between `min` and `max`; `random` is in [0, 1). */
export const jittered = (range: { readonly min: number; readonly max: number }, random: number): number =>
  Math.round(range.min + (range.max - range.min) * random)

/**
 * `Retry-After` in milliseconds: seconds or an HTTP date (RFC 9110, 10.2.3). At most `maxMs`; undefined when absent or
 * invalid.
 */
export function retryAfterMs(header: string | undefined, nowMs: number, maxMs: number): number | undefined {
  if (header === undefined) return undefined
  const value = header.trim()
  // `Date.parse` accepts almost anything that ends in a number, so require a time of day.
  const date = /\d\d:\d\d:\d\d/.test(value) ? Date.parse(value) : Number.NaN
  const waitMs = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1_000 : date - nowMs
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), maxMs)
}
