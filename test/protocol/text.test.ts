/** Text from a server, made safe to print. */
import { describe, expect, it } from 'vitest'
import { onOneLine, printable, printableJson, shortened } from '../../src/protocol/text.js'

const range = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, at) => String.fromCharCode(from + at))

const OVERRIDES = [...range(0x202a, 0x202e), ...range(0x2066, 0x2069)]
const CONTROLS = [...range(0, 8), '\u000b', '\u000c', ...range(0x0e, 0x1f), ...range(0x7f, 0x9f)]

describe('a text', () => {
  it('has no control character and no override', () => {
    for (const each of [...CONTROLS, ...OVERRIDES]) {
      expect(printable(`a${each}b`)).toBe('ab')
      const json = printableJson({ text: `a${each}b` }, 2)
      expect(json).not.toContain(each)
      expect(JSON.parse(json)).toEqual({ text: `a${each}b` })
    }
  })

  it('has its line ends and tabs as spaces', () => {
    expect(printable('a\r\nb\tc')).toBe('a b c')
  })

  it.each(['\u2029', '\u200f', '\u202f', '\u2065', '\u206a', 'é', '🦊', 'שלום'])('keeps %j', (each) => {
    expect(printable(each)).toBe(each)
  })

  it('shows control characters and overrides as escapes in JSON', () => {
    expect(printableJson('\u0000\u009b\n\u202eé')).toBe(String.raw`"\u0000\u009b\n\u202eé"`)
    expect(printableJson(undefined)).toBe('null')
  })

  it('ends with an ellipsis when it is longer than the limit', () => {
    expect(shortened('x'.repeat(300))).toHaveLength(300)
    expect(shortened('x'.repeat(301))).toBe(`${'x'.repeat(299)}…`)
    expect(shortened('abcd', 3)).toBe('ab…')
  })
})

describe('several lines', () => {
  it.each([
    ['one', 'one'],
    ['one\n', 'one'],
    ['one\n  two', 'one; two'],
    ['One.\n  Two.', 'One. Two.'],
    ['these:\na\n\nb', 'these: a; b'],
  ])('%j: %j', (text, expected) => {
    expect(onOneLine(text)).toBe(expected)
  })
})
