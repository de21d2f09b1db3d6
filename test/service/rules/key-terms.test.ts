import { expect, test } from 'vitest'
import { isPlainName, readKeyTerms } from '../../../src/service/rules/key-terms.js'

test.each([
  ['letters of any language', true, ['ci', 'Annas Rechner (Küche)', '北京 3', 'مفتاح', 'x'.repeat(100)]],
  ['too long, empty, or with spaces at its ends', false, ['x'.repeat(101), '', ' x', 'x\u00a0']],
  ['an emoji, alone or with a variation selector', true, ['🦊', '❤\ufe0f']],
  ['a flag', true, ['🇩🇪']],
  ['the joiner', false, ['c\u200di', '\u200d', '🦊\u200d']],
  ['control characters (Cc)', false, ['a\nb', 'a\u0085b']],
  ['a space of no width (Cf)', false, ['c\u200bi']],
  ['directions (Cf)', false, ['\u202egnp.exe', 'a\u2066b', 'a\u200fb']],
  ['a soft hyphen, a byte order mark, a tag (Cf)', false, ['a\u00adb', '\ufeffci', 'ci\u{e0041}']],
  ['half a character, private, unassigned (Cs, Co, Cn)', false, ['a\ud83e', 'a\ue000', 'a\u0378']],
  ['line and paragraph separators (Zl, Zp)', false, ['a\u2028b', 'a\u2029b']],
])('a key name with %s is accepted: %s', (_what, isPlain, names) => {
  expect(names.filter((name) => isPlainName(name) !== isPlain)).toEqual([])
})

const NOW_MS = Date.UTC(2026, 0, 1)

test.each([
  [
    { spend_limit: '0', quota: '1000000000000' },
    { spendLimit: 0, quota: 1e12 },
  ],
  [{ allowed_ips: '10.0.0.0/8\n::1, 127.0.0.1' }, { allowedIps: ['10.0.0.0/8', '::1', '127.0.0.1'] }],
  [{ rate: '100/10s' }, { rate: { requests: 100, windowMs: 10_000 } }],
  [{ expires_at: '30d' }, { expiresAtMs: NOW_MS + 30 * 86_400_000 }],
  [{ expires_at: '2026-01-01' }, { expiresAtMs: NOW_MS + 86_400_000 - 1 }],
  [
    { quota: '', rate: '', expires_at: '' },
    { quota: undefined, rate: undefined, expiresAtMs: undefined },
  ],
])('the texts %j are the terms %j', (texts, terms) => {
  expect(readKeyTerms(texts, NOW_MS)).toEqual(terms)
})

test.each([
  ['spend_limit', '-1', /is not a whole number from 0 to/],
  ['quota', '1.5', /^quota: "1\.5" is not a whole number/],
  ['quota', '1000000000001', /is not a whole number/],
  ['allowed_ips', '10.0.0.0/33', /^allowed_ips: "10\.0\.0\.0\/33" is not an IP address/],
  ['allowed_ips', '::1 '.repeat(101), /at most 100 addresses/],
  ['rate', '100', /"100" is not a valid rate/],
  ['rate', '0/10s', /0\/10s is out of range/],
  ['rate', '5/2h', /5\/2h is out of range/],
  ['rate', '5/soon', /"soon" is not a valid duration/],
  ['expires_at', 'soon', /"soon" is not a valid duration/],
  ['expires_at', '0', /would expire immediately/],
  ['expires_at', '2025-12-31', /would expire immediately/],
  ['expires_at', '2026-02-30', /is not a valid duration/],
  ['expires_at', '36501d', /is too long/],
])('the %s %j is refused', (field, text, says) => {
  expect(() => readKeyTerms({ [field]: text }, NOW_MS)).toThrow(says)
})
