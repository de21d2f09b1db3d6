/** Times and days in JSON and query strings. Pure. */

export const DAY_MS = 86_400_000

export const isoOrNull = (ms: number | undefined): string | null =>
  ms === undefined ? null : new Date(ms).toISOString()

/** Start of the day in UTC, in milliseconds. Undefined for an invalid day, such as 2026-02-30. */
export function parseDay(text: string): number | undefined {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return !Number.isNaN(ms) && dayOf(ms) === text ? ms : undefined
}

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

export const startOfDay = (ms: number): number => ms - (ms % DAY_MS)
