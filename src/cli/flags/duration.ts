/** Durations as people write them: `90s`, `15m`, `1h30m`, `0`. */
import { usageError } from '../../errors.js'

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g

/** A duration of which 0 would mean everything. Throws `usage`, also for 0. */
export function parseAge(text: string, what: string): number {
  const ms = parseDuration(text, what, 'Examples: 12h, 30d.')
  if (ms === 0) throw usageError(`${what}: the duration must be longer than 0.`, 'Examples: 12h, 30d.')
  return ms
}

const EXAMPLES = 'Examples: 90s, 15m, 1h30m, 0 for no limit.'

/** Milliseconds. Throws `usage` that names `what`. A number other than 0 needs a unit. */
export function parseDuration(text: string, what: string, examples = EXAMPLES): number {
  if (/^0+$/.test(text.trim())) return 0
  const parts = [...text.trim().matchAll(PART)]
  const whole = parts.map(([part]) => part).join('')
  if (parts.length === 0 || whole !== text.trim())
    throw usageError(`${what}: "${text}" is not a valid duration.`, examples)
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit ?? ''] ?? 0), 0)
}

/** `4 s`, `2 min 05 s`, `1 h 03 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} min`
}
