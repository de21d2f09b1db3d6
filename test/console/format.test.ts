/** Numbers and times as the console shows them; a value that is missing is a dash and never an error. */
import { expect, it } from 'vitest'
import { describeAgent } from '../../src/console/account/account-page.js'
import * as format from '../../src/console/format.js'

const NOW = Date.parse('2026-11-22T12:00:00Z')
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString()

it.each([null, undefined, Number.NaN, 'x'] as never[])('%s is a dash', (value) => {
  const { formatNumber, formatAmount, formatBytes, formatDuration, formatTime, formatDay } = format
  for (const write of [formatNumber, formatAmount, formatBytes, formatDuration, formatTime, formatDay])
    expect(write(value)).toBe('–')
  expect(format.formatRelative(value, NOW)).toBe('–')
})

it.each([
  [0, '0'],
  [12_345.678, '12,345.68'],
  [-1, '-1'],
])('formats the number %s', (value, text) => expect(format.formatNumber(value)).toBe(text))

it.each([
  [1, '1 credit'],
  [-1, '-1 credit'],
  [1_000, '1,000 credits'],
  [0, '0 credits'],
])('formats %s credits with the unit', (value, text) => expect(format.formatCredits(value)).toBe(text))

it.each([
  [1_000, '+1,000'],
  [-6, '−6'],
  [0, '+0'],
])('formats the amount %s with its sign', (value, text) => expect(format.formatAmount(value)).toBe(text))

it.each([
  [0, '0 B'],
  [1_500, '1.5 KiB'],
  [1_023, '1023 B'],
  // What rounds to a whole unit is written in that unit.
  [1_048_524, '1023.9 KiB'],
  [1_048_525, '1.0 MiB'],
  [1_048_575, '1.0 MiB'],
  [1024 ** 3 - 1, '1.0 GiB'],
  [2e15, '1819.0 TiB'],
])('formats a size of %s bytes', (value, text) => expect(format.formatBytes(value)).toBe(text))

it.each([
  [400, '0.4 s'],
  [-5, '0.0 s'],
  [12_400, '12 s'],
  [59_700, '1 min'],
  [125_000, '2 min 5 s'],
  [3_600_000, '1 h'],
  [4_200_000, '1 h 10 min'],
])('formats a duration of %s ms', (value, text) => expect(format.formatDuration(value)).toBe(text))

it.each([
  [0, 'just now'],
  [-44, 'just now'],
  [30, 'in a moment'],
  [-60, '1 minute ago'],
  [-3_500, '58 minutes ago'],
  [-3_600, '1 hour ago'],
  [-86_400, 'yesterday'],
  [86_400, 'tomorrow'],
  [7_200, 'in 2 hours'],
  [-5 * 86_400, '5 days ago'],
  [-8 * 86_400, 'Nov 14, 2026'],
])('formats a time %s seconds from now', (seconds, text) =>
  expect(format.formatRelative(at(seconds), NOW, 'UTC')).toBe(text),
)

// By calendar days where the user is, and not by 24 hours.
it.each<[now: string, then: string, timeZone: string, text: string]>([
  ['2026-11-22T23:50:00Z', '2026-11-22T00:10:00Z', 'UTC', '24 hours ago'],
  ['2026-11-22T23:50:00Z', '2026-11-22T00:20:00Z', 'Asia/Tokyo', 'yesterday'],
  ['2026-11-22T00:10:00Z', '2026-11-22T23:55:00Z', 'UTC', 'in 24 hours'],
  ['2026-11-22T12:00:00Z', '2026-11-21T18:00:00Z', 'UTC', '18 hours ago'],
  ['2026-11-22T01:00:00Z', '2026-11-20T23:00:00Z', 'UTC', '2 days ago'],
  ['2026-11-22T01:00:00Z', '2026-11-20T23:00:00Z', 'America/New_York', 'yesterday'],
  ['2026-11-22T23:00:00Z', '2026-11-21T01:00:00Z', 'UTC', 'yesterday'],
  ['2026-11-22T23:00:00Z', '2026-11-24T01:00:00Z', 'UTC', 'in 2 days'],
  ['2026-11-22T01:00:00Z', '2026-11-23T23:00:00Z', 'UTC', 'tomorrow'],
  // The clocks of New York went back in this night: 25 hours are between the two.
  ['2026-11-01T17:00:00Z', '2026-10-31T16:00:00Z', 'America/New_York', 'yesterday'],
  ['2026-11-22T23:00:00Z', '2026-11-16T01:00:00Z', 'UTC', '6 days ago'],
  ['2026-11-22T01:00:00Z', '2026-11-15T23:00:00Z', 'UTC', 'Nov 15, 2026'],
])('at %s, formats %s in %s as "%s"', (now, then, timeZone, text) =>
  expect(format.formatRelative(then, Date.parse(now), timeZone)).toBe(text),
)

it('a full time names its time zone', () => {
  expect(format.formatTime(at(5), 'UTC')).toBe('Nov 22, 2026, 12:00:05 UTC')
  expect(format.formatTime(at(5), 'Asia/Tokyo')).toBe('Nov 22, 2026, 21:00:05 GMT+9')
  expect(format.formatFullTime(at(5), 'UTC')).toBe('Nov 22, 2026, 12:00:05 UTC')
  expect(format.formatFullTime(at(5), 'Asia/Tokyo')).toBe(
    'Nov 22, 2026, 21:00:05 GMT+9 (Nov 22, 2026, 12:00:05 UTC)',
  )
})

it.each([
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
    'Chrome on macOS',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0',
    'Edge on Windows',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
    'Safari on iPhone',
  ],
  [
    'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
    'Chrome on Android',
  ],
  ['curl/8.5.0', 'curl'],
  ['<img src=x>', '<img src=x>'],
  ['', 'Unknown browser'],
  [null, 'Unknown browser'],
])('names the browser and the system of "%s"', (line, text) => expect(describeAgent(line)).toBe(text))
