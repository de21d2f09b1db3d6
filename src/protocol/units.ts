/** Durations (`90s`, `15m`, `1h30m`, `0`), times and days, and sizes (`12.3 MiB`), as texts. */
import { usageError } from '../errors.js'
import { shortened } from './text.js'

export const DAY_MS = 86_400_000
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS }
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g

/** A hundred years: today plus this duration is still a date that a calendar, a database and RFC 3339 can represent. */
const MAX_DAYS = 36_500

const EXAMPLES = 'Examples: 90s, 15m, 1h30m, 0 for no limit.'

/**
 * Returns whole milliseconds, at most 36,500 days. Less than a millisecond becomes 1, because 0 often means no limit. A
 * number other than 0 needs a unit. Throws `usage` with `what` in its message.
 */
export function parseDuration(text: string, what: string, examples = EXAMPLES): number {
  if (/^0+$/.test(text.trim())) return 0
  const parts = [...text.trim().matchAll(PART)]
  const whole = parts.map(([part]) => part).join('')
  if (parts.length === 0 || whole !== text.trim())
    throw usageError(`${what}: "${shortened(text)}" is not a valid duration.`, examples)
  const ms = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit ?? ''] ?? 0), 0)
  if (ms <= MAX_DAYS * DAY_MS) return ms === 0 ? 0 : Math.max(1, Math.round(ms))
  throw usageError(`${what}: ${shortened(text)} is too long; the maximum is ${MAX_DAYS}d.`, examples)
}

const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** Formats a size in steps of 1024, like the limits of the service: `12.3 MiB`. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0]
  // Compare the rounded value: otherwise 1023.96 KiB would be shown as 1024.0 KiB.
  while (rounded(value, unit) >= 1024 && unit < SIZE_UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? bytes : value.toFixed(1)} ${SIZE_UNITS[unit]}`
}

const rounded = (value: number, unit: number): number => (unit === 0 ? value : Number(value.toFixed(1)))

/** For example `4 s`, `2 min 05 s`, `1 h 03 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} min`
}

/** For example `1.4 s`, `12 s`, `2 min 05 s`. */
export const formatSeconds = (ms: number): string =>
  ms < 9_950 ? `${(ms / 1_000).toFixed(1)} s` : formatDuration(Math.max(ms, 10_000))

/** A time in JSON: ISO 8601 in UTC. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()

export const isoOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : isoTime(ms))

/** Start of the day in UTC, in milliseconds. Undefined for an invalid day, such as 2026-02-30. */
export function parseDay(text: string): number | undefined {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return !Number.isNaN(ms) && dayOf(ms) === text ? ms : undefined
}

export const dayOf = (ms: number): string => isoTime(ms).slice(0, 10)

export const startOfDay = (ms: number): number => ms - (ms % DAY_MS)
