import { expect, it } from 'vitest'
import { formatSeconds, parseDuration } from '../../src/protocol/units.js'

it.each([
  ['0', 0],
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1_500],
  ['1.0001s', 1_000],
  ['0.5ms', 1],
  ['0.000001ms', 1],
  ['0.0s', 0],
  [' 500ms ', 500],
  ['36500d', 36_500 * 86_400_000],
])('a duration %j is %d ms', (text, ms) => expect(parseDuration(text, '--timeout')).toBe(ms))

it.each([
  ['', '--timeout: "" is not a valid duration.'],
  ['5', '--timeout: "5" is not a valid duration.'],
  ['5s6', '--timeout: "5s6" is not a valid duration.'],
  ['-5s', '--timeout: "-5s" is not a valid duration.'],
  ['36501d', '--timeout: 36501d is too long; the maximum is 36500d.'],
  ['100000000d', '--timeout: 100000000d is too long; the maximum is 36500d.'],
  [`${'9'.repeat(400)}d`, `--timeout: ${'9'.repeat(299)}… is too long; the maximum is 36500d.`],
])('a duration %j is refused', (text, message) =>
  expect(() => parseDuration(text, '--timeout')).toThrow(expect.objectContaining({ code: 'usage', message })),
)

it.each([
  [449, '0.4 s'],
  [9_960, '10 s'],
  [125_000, '2 min 05 s'],
  [3_725_000, '1 h 02 min'],
])('%i ms are %s', (ms, text) => expect(formatSeconds(ms)).toBe(text))
