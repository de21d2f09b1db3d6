/** Durations as flags, and as people read them. */
import { usageError } from '../../errors.js'
import { parseDuration } from '../../protocol/duration.js'

export { parseDuration }

/** A duration of which 0 would mean everything. Throws `usage`, also for 0. */
export function parseAge(text: string, what: string): number {
  const ms = parseDuration(text, what, 'Examples: 12h, 30d.')
  if (ms === 0) throw usageError(`${what}: the duration must be longer than 0.`, 'Examples: 12h, 30d.')
  return ms
}

/** `4 s`, `2 min 05 s`, `1 h 03 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} min`
}
