import { expect, test } from 'vitest'
import { checkNewPassword, createPasswords } from '../../../src/service/rules/credentials.js'
import { createQuickPasswords } from '../../support/passwords.js'

const PASSWORD = 'correct horse battery'

test('a stored password names its parameters and has its own salt', async () => {
  const passwords = createPasswords()
  const one = await passwords.store(PASSWORD)
  const quick = createQuickPasswords()
  const other = await quick.store(PASSWORD)
  expect(one).toMatch(/^scrypt\$32768\$8\$1\$[\w-]{22}\$[\w-]{43}$/)
  expect(one.slice(0, 40)).not.toBe(other.slice(0, 40))
  expect(await passwords.matches(PASSWORD, one)).toBe(true)
  expect(await quick.matches(`${PASSWORD} `, other)).toBe(false)
  expect(await quick.matches('', other)).toBe(false)
})

test('a password in another Unicode normalization form still matches', async () => {
  const { store, matches } = createQuickPasswords()
  const stored = await store('Ångström-12-ﬁsh')
  expect(await matches('Ångström-12-fish', stored)).toBe(true)
})

test.each([
  ['11 characters', 'x'.repeat(11), /fewer than 12/],
  ['12 characters', 'x'.repeat(12), undefined],
  ['1,000 characters', 'x'.repeat(1_000), undefined],
  ['1,001 characters', 'x'.repeat(1_001), /more than 1000/],
  ['nothing', '', /fewer than 12/],
  ['11 characters that are many in the stored form', '\ufdfa'.repeat(11), /fewer than 12/],
  ['1,001 characters of two code units', '🦊'.repeat(1_001), /more than 1000/],
  ['NUL alone', '\0'.repeat(12), /control characters/],
  ['a tab', `${PASSWORD}\t`, /control characters/],
  ['the first half of a character', `${PASSWORD}\ud83e`, /incomplete characters/],
  ['the replacement character', `${PASSWORD}\ufffd`, undefined],
  ['spaces at the ends', ` ${PASSWORD} `, undefined],
])('%s', (_name, password, says) => {
  const check = () => checkNewPassword(password)
  if (says === undefined) expect(check).not.toThrow()
  else expect(check).toThrow(says)
})

// To scrypt each pair is the same, since it fills the password with zeros, and UTF-8 has no halves of characters.
test.each([
  ['an empty one', '\0'.repeat(12), ''],
  ['NUL at the end', 'ABCDEFGHIJKL', 'ABCDEFGHIJKL\0'],
  ['half a character', `${PASSWORD}\ufffd`, `${PASSWORD}\ud83e`],
])('%s never matches', async (_name, stored, given) => {
  const { store, matches } = createQuickPasswords()
  expect(await matches(given, await store(stored))).toBe(false)
})
