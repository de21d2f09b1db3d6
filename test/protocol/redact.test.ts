import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRedact } from '../../src/protocol/redact.js'

const KEY = 'rk_live/"4f%9+secret'
const redact = createRedact(KEY)

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0')
const url = (character: string) => `%${hex(character).toUpperCase()}`
const json = (character: string) => `\\u00${hex(character)}`
const each = (key: string, write: (character: string) => string) => [...key].map(write).join('')

describe('a key in what a service said', () => {
  it.each([
    ['as it is', KEY],
    ['as JSON, with escaped slashes', JSON.stringify(KEY).slice(1, -1).replace('/', '\\/')],
    ['as JSON, in capitals', each(KEY, (character) => json(character).toUpperCase().replace('U', 'u'))],
    ['in a URL', encodeURIComponent(KEY)],
  ])('is redacted %s', (_, written) => {
    expect(redact(`Bearer ${written}, and ${written}.`)).toBe('Bearer [API key], and [API key].')
  })

  it('redacts the key in any mixture of spellings', () => {
    const character = fc.constantFrom(...'ab/".-_09'.split(''))
    const spelling = fc.constantFrom((text: string) => text, json, url)
    fc.assert(
      fc.property(
        fc.array(fc.tuple(character, spelling), { minLength: 8, maxLength: 40 }),
        fc.constantFrom('', 'x', 'x\\', '%', 'x%2', '\\u00', '%20', '\\u0020', '\\n'),
        (spelt, before) => {
          const key = spelt.map(([plain]) => plain).join('')
          const written = spelt.map(([plain, write]) => write(plain)).join('')
          expect(createRedact(key)(`${before} ${written} x`)).toBe(`${before} [API key] x`)
        },
      ),
    )
  })

  it('redacts a key that the end of the text cuts after its eighth character', () => {
    expect(redact(`Bearer ${KEY.slice(0, 8)}`)).toBe('Bearer [API key]')
    expect(redact(`Bearer ${encodeURIComponent(KEY.slice(0, 12))}`)).toBe('Bearer [API key]')
    expect(redact(`Bearer ${KEY.slice(0, 7)}`)).toBe(`Bearer ${KEY.slice(0, 7)}`)
    expect(redact(`Bearer ${KEY.slice(0, 12)} `)).toBe(`Bearer ${KEY.slice(0, 12)} `)
  })

  it('finds a key whose beginning repeats', () => {
    expect(createRedact('abababac')('x abababababac abababa')).toBe('x abab[API key] abababa')
    expect(createRedact('abababacx')('x abababababac')).toBe('x abab[API key]')
  })

  it.each([
    ['acme%41live"9f8e7d6c', (key: string) => new URL(`https://h/api?key=${key}`).href],
    ['sk-ab%2Fcd{efgh}', (key: string) => new URL(`https://h/${key}`).href],
    [String.raw`sk-\u0041bc"defgh`, (key: string) => key.replace('"', String.raw`\"`)],
    ['sk-%2541%25"abcdefgh', (key: string) => key.replace('"', '%22')],
    ['sk-%2541%25"abcdefgh', (key: string) => encodeURIComponent(encodeURIComponent(key))],
  ])('is redacted where its own escapes are kept and other characters are encoded: %s', (key, write) => {
    const written = write(key)
    const at = /acme|sk-/.exec(written)?.index ?? 0
    expect(createRedact(key)(`${written} x`)).toBe(`${written.slice(0, at)}[API key] x`)
  })

  it.each(['%', '%2', '\\', '\\u', '\\u0', '\\u00', '\\u002'])(
    'is redacted where the text ends within an escape: %s',
    (torn) => {
      expect(createRedact('sk-abcdefghij"klmno')(`torn sk-abcdefghij${torn}`)).toBe('torn [API key]')
      expect(createRedact('sk-%41bcdefghij"{klmno')(`torn sk-%41bcdefghij%22${torn}`)).toBe('torn [API key]')
    },
  )

  it('leaves other text as it is', () => {
    const text = `{"url":"https:\\/\\/files.test\\/a%20b?token=${KEY.slice(0, -1)}x"}`
    expect(redact(text)).toBe(text)
    expect(createRedact('short')('short')).toBe('short')
  })

  it('takes time that grows with the text alone, however long the key is', () => {
    const long = `eyJ${'aB3-_'.repeat(3_200)}`
    expect(createRedact(long)(`Bearer ${long} and ${each(long, url)}.`)).toBe(
      'Bearer [API key] and [API key].',
    )
    // Compared at each character, this would take 10^10 steps.
    expect(createRedact(`sk-%41${'a'.repeat(16_000)}"`)('sk-%41'.repeat(100_000))).toContain('%41')
    // With unbounded escapes, this would take minutes.
    const [slashes, percents] = ['\\'.repeat(500_000), '%25'.repeat(250_000)]
    for (const text of [slashes, percents, `sk-abcde${slashes}`])
      expect(createRedact('sk-abcdefgh')(`${text} x`)).toBe(`${text} x`)
    // Of a longer key only the beginning is compared.
    const almost = `${'a'.repeat(200)}b`.repeat(100)
    expect(createRedact(`${'a'.repeat(16_000)}c`)(almost)).toBe(almost)
  })
})
