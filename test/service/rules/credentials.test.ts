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

test('a password is verified with its stored parameters, such as those of RFC 7914', async () => {
  const stored =
    'scrypt$1024$8$16$TmFDbA$_bq-HJ00cgB4VucZDQHp_nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG_xCSedmDDaxyevuUqD7m2DYMvfoswGQA'
  const { matches } = createPasswords()
  expect(await matches('password', stored)).toBe(true)
  expect(await matches('passwort', stored)).toBe(false)
})

test('a password in another Unicode normalization form still matches', async () => {
  const { store, matches } = createQuickPasswords()
  const stored = await store('Ångström-12-ﬁsh')
  expect(await matches('Ångström-12-fish', stored)).toBe(true)
})

test.each<[name: string, password: string, says: RegExp | undefined]>([
  ['11 characters', 'x'.repeat(11), /fewer than 12/],
  ['12 characters', 'x'.repeat(12), undefined],
  ['12 characters of two code units', '🦊'.repeat(12), undefined],
  ['11 characters that were 12 before they were composed', `${'x'.repeat(10)}e\u0301`, /fewer than 12/],
  ['1,000 characters', 'x'.repeat(1_000), undefined],
  ['1,001 characters', 'x'.repeat(1_001), /more than 1000/],
  ['nothing', '', /fewer than 12/],
  ['one character that is 18 in the stored form', '\ufdfa', /fewer than 12/],
  ['11 characters that are many in the stored form', '\ufdfa'.repeat(11), /fewer than 12/],
  ['1,000 characters of two code units', '🦊'.repeat(1_000), undefined],
  ['1,001 characters of two code units', '🦊'.repeat(1_001), /more than 1000/],
  ['NUL alone', '\0'.repeat(12), /control characters/],
  ['NUL at the end', 'ABCDEFGHIJKL\0', /control characters/],
  ['a tab', `${PASSWORD}\t`, /control characters/],
  ['DEL', `${PASSWORD}\u007f`, /control characters/],
  ['a control character of C1', `\u0085${PASSWORD}`, /control characters/],
  ['the first half of a character', `${PASSWORD}\ud83e`, /incomplete characters/],
  ['the second half of a character', `\udd8a${PASSWORD}`, /incomplete characters/],
  ['the replacement character', `${PASSWORD}\ufffd`, undefined],
  ['spaces at the ends', ` ${PASSWORD} `, undefined],
])('%s', (_name, password, says) => {
  const check = () => checkNewPassword(password)
  if (says === undefined) expect(check).not.toThrow()
  else expect(check).toThrow(says)
})

// To scrypt each pair is the same, since it fills the password with zeros, and UTF-8 has no halves of characters.
test.each<[name: string, stored: string, given: string]>([
  ['an empty one', '\0'.repeat(12), ''],
  ['another count of NUL', '\0'.repeat(12), '\0'],
  ['NUL at the end', 'ABCDEFGHIJKL', 'ABCDEFGHIJKL\0'],
  ['half a character', `${PASSWORD}\ufffd`, `${PASSWORD}\ud83e`],
])('%s never matches', async (_name, stored, given) => {
  const { store, matches } = createQuickPasswords()
  expect(await matches(given, await store(stored))).toBe(false)
})

/** Derivations that end when the test says so. */
function createHeld() {
  const running: (() => void)[] = []
  const derived: string[] = []
  const passwords = createPasswords((password, { keyBytes }) => {
    derived.push(password)
    return new Promise((resolve) => running.push(() => resolve(new Uint8Array(keyBytes))))
  }, 2)
  return { passwords, running, derived }
}

test('two derivations run at once, the rest wait in a queue, and more are refused', async () => {
  const { passwords, running, derived } = createHeld()
  const answers = Array.from({ length: 110 }, (_, at) =>
    passwords.store(`password number ${at}`).then(
      () => 'stored',
      ({ code, status }) => `${status} ${code}`,
    ),
  )
  expect(derived).toEqual(['password number 0', 'password number 1'])
  let ended = 0
  while (ended < 102) {
    await new Promise(setImmediate)
    expect(running.length - ended).toBeLessThanOrEqual(2)
    for (const end of running.slice(ended)) {
      end()
      ended++
    }
  }
  const outcomes = await Promise.all(answers)
  expect(outcomes.slice(0, 102)).toEqual(Array(102).fill('stored'))
  expect(outcomes.slice(102)).toEqual(Array(8).fill('503 overloaded'))
  expect(derived).toEqual(Array.from({ length: 102 }, (_, at) => `password number ${at}`))
})

test('a failed derivation lets the next one start', async () => {
  let count = 0
  const passwords = createPasswords(async (_password, { keyBytes }) => {
    if (count++ < 2) throw new Error('no memory')
    return new Uint8Array(keyBytes)
  })
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => passwords.store(PASSWORD)))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled'])
})
