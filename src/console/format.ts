/** Formats numbers, times and sizes for display. Null and invalid values become a dash. */
import { formatBytes as formatByteSize } from '../protocol/units.js'

const DASH = '–'
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })

/** `12,345` */
export const formatNumber = (value: number | null | undefined): string =>
  typeof value === 'number' && Number.isFinite(value) ? whole.format(value) : DASH

/** `1,234 credits` */
export const formatCredits = (value: number | null | undefined): string => plural(value, 'credit')

/** `Image` */
export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** `1 run`, `2 runs` */
export const plural = (count: number | null | undefined, noun: string): string =>
  `${formatNumber(count)} ${noun}${count === 1 || count === -1 ? '' : 's'}`

/** `+1,000`, `−6` */
export function formatAmount(value: number | null | undefined): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return DASH
  return value < 0 ? `−${whole.format(-value)}` : `+${whole.format(value)}`
}

/** `1.4 MiB` */
export const formatBytes = (bytes: number | null | undefined): string =>
  typeof bytes !== 'number' || !Number.isFinite(bytes) || bytes < 0 ? DASH : formatByteSize(bytes)

/** `0.4 s`, `12 s`, `2 min 5 s`, `1 h 10 min` */
export function formatDuration(milliseconds: number | null | undefined): string {
  if (typeof milliseconds !== 'number' || !Number.isFinite(milliseconds)) return DASH
  const seconds = Math.max(0, milliseconds) / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const total = Math.round(seconds)
  if (total < 60) return `${total} s`
  if (total < 3600) return `${Math.floor(total / 60)} min${total % 60 === 0 ? '' : ` ${total % 60} s`}`
  const minutes = Math.round(total / 60)
  return `${Math.floor(minutes / 60)} h${minutes % 60 === 0 ? '' : ` ${minutes % 60} min`}`
}

/** `12 s`, `2 min 5 s` */
export const formatWholeSeconds = (milliseconds: number): string => {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  return seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1000)
}

const DAY_MS = 86_400_000
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'long' })

/**
 * `just now`, `5 minutes ago`, `in 3 hours`, `yesterday`. More than a week away, returns the date. Days are calendar
 * days in `timeZone` (default: the browser's time zone).
 */
export function formatRelative(iso: string | null | undefined, now: number, timeZone?: string): string {
  const time = parseTime(iso)
  if (time === undefined) return DASH
  const seconds = (time - now) / 1000
  const distance = Math.abs(seconds)
  if (distance < 45) return seconds > 5 ? 'in a moment' : 'just now'
  if (distance < 3570)
    return relative.format(Math.sign(seconds) * Math.max(1, Math.round(distance / 60)), 'minute')
  const days = calendarDay(time, timeZone) - calendarDay(now, timeZone)
  if (distance < 82_800 || days === 0) return relative.format(Math.round(seconds / 3600), 'hour')
  return Math.abs(days) < 7 ? relative.format(days, 'day') : formatDay(iso, timeZone)
}

/** Number of the calendar day in `timeZone`, counted from 1970. */
function calendarDay(time: number, timeZone: string | undefined): number {
  const text = dateFormat(timeZone, { year: 'numeric', month: 'numeric', day: 'numeric' }).format(time)
  const [month = 0, day = 0, year = 0] = text.split('/').map(Number)
  return Date.UTC(year, month - 1, day) / DAY_MS
}

/** `Nov 22, 2026` */
export function formatDay(iso: string | null | undefined, timeZone?: string): string {
  const time = parseTime(iso)
  return time === undefined ? DASH : dateFormat(timeZone, { dateStyle: 'medium' }).format(time)
}

/** `Nov 22, 2026, 17:30:05 UTC` */
export function formatTime(iso: string | null | undefined, timeZone?: string): string {
  const time = parseTime(iso)
  if (time === undefined) return DASH
  return dateFormat(timeZone, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).format(time)
}

/** `Nov 22, 2026, 18:30:05 GMT+1 (Nov 22, 2026, 17:30:05 UTC)` */
export function formatFullTime(iso: string | null | undefined, timeZone?: string): string {
  const [local, utc] = [formatTime(iso, timeZone), formatTime(iso, 'UTC')]
  return local === utc ? local : `${local} (${utc})`
}

const dateFormats = new Map<string, Intl.DateTimeFormat>()

/** Returns a cached format. Creating a format takes longer than drawing a row. */
function dateFormat(timeZone: string | undefined, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${timeZone} ${Object.keys(options)}`
  const known = dateFormats.get(key)
  if (known !== undefined) return known
  const created = new Intl.DateTimeFormat(
    'en-US',
    timeZone === undefined ? options : { ...options, timeZone },
  )
  dateFormats.set(key, created)
  return created
}

function parseTime(iso: string | null | undefined): number | undefined {
  const time = typeof iso === 'string' ? Date.parse(iso) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
