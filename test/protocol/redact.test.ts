import { describe, expect, it } from 'vitest'
import { createRedact } from '../../src/protocol/redact.js'

const KEY = 'rk_live/"4f%9+secret'
const redact = createRedact(KEY)

describe('a key in what a service said', () => {
  it.each([
    ['as it is', KEY],
    ['as JSON', JSON.stringify(KEY).slice(1, -1)],
    ['as JSON, with escaped slashes', JSON.stringify(KEY).slice(1, -1).replace('/', '\\/')],
    ['in a URL', encodeURIComponent(KEY)],
    ['in a URL, with small digits', encodeURIComponent(KEY).replace(/%../g, (each) => each.toLowerCase())],
    ['in a whole URL', encodeURI(KEY)],
  ])('is redacted %s', (_, written) => {
    expect(redact(`Bearer ${written}, and ${written}.`)).toBe('Bearer [API key], and [API key].')
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

  it.each(['%', '%2', '\\', '\\"', '%22k'])(
    'is redacted where the text ends within an escape: %s',
    (torn) => {
      expect(createRedact('sk-abcdefghij"klmno')(`torn sk-abcdefghij${torn}`)).toBe('torn [API key]')
    },
  )

  it('leaves other text as it is', () => {
    const text = `{"url":"https:\\/\\/files.test\\/a%20b?token=${KEY.slice(0, -1)}x"}`
    expect(redact(text)).toBe(text)
    expect(createRedact('short')('short')).toBe('short')
  })

  it('takes little time for a long key', () => {
    const long = `eyJ${'aB3-_'.repeat(3_200)}`
    expect(createRedact(long)(`Bearer ${long} and ${long}.`)).toBe('Bearer [API key] and [API key].')
    const almost = `${'a'.repeat(16_000)}b`.repeat(100)
    expect(createRedact(`${'a'.repeat(16_000)}c`)(almost)).toBe(almost)
  })
})
