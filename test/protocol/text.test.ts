/** Text from a server, made safe to print; and the texts of users. */
import { describe, expect, it } from 'vitest'
import { labelsOf } from '../../src/cli/flags/values.js'
import {
  asLabel,
  cutToBytes,
  labelProblem,
  MAX_LABELS,
  nearest,
  onOneLine,
  printable,
  printableJson,
  shortened,
} from '../../src/protocol/text.js'

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

it.each([
  ['one', 'one'],
  ['one\n', 'one'],
  ['one\n  two', 'one; two'],
  ['One.\n  Two.', 'One. Two.'],
  ['these:\na\n\nb', 'these: a; b'],
])('the text %j is %j on one line', (text, expected) => {
  expect(onOneLine(text)).toBe(expected)
})

it.each([
  ['fox', 2, 'fo'],
  ['狐狸', 5, '狐'],
  ['🦊', 3, ''],
])('%j cut to %i bytes is %j', (text, bytes, cut) => {
  expect(cutToBytes(text, bytes)).toBe(cut)
})

it.each([
  ['STATSU', ['status', 'wait'], 'status'],
  ['wiat', ['status', 'wait'], 'wait'],
  ['banana', ['status', 'wait'], undefined],
])('the nearest to %s among %j is %s', (word, candidates, expected) => {
  expect(nearest(word, candidates)).toBe(expected)
})

describe('a label', () => {
  const CONTROL = 'a label must not contain control characters'
  it.each<[string, string, string, string | undefined]>([
    ['loses spaces at its ends, and is composed', ' cafe\u0301\t', 'caf\u00e9', undefined],
    ['may have joined characters', '👩‍🎨 می‌خواهم', '👩‍🎨 می‌خواهم', undefined],
    ['must not be blank', ' \n ', '', 'a label must not be empty'],
    ['has no line end', 'a\nb', 'a\nb', CONTROL],
    ['has no override of direction', 'a\u202eb', 'a\u202eb', CONTROL],
    ['has no half of a pair', 'a\ud83e', 'a\ud83e', CONTROL],
    ['may have 100 characters', '🦊'.repeat(100), '🦊'.repeat(100), undefined],
    ['has no more', '🦊'.repeat(101), '🦊'.repeat(101), 'a label must have at most 100 characters'],
  ])('%s: %j', (_, text, label, problem) => {
    expect(asLabel(text)).toBe(label)
    expect(labelProblem(asLabel(text))).toBe(problem)
  })

  it('is given to a command once, in the order given, and not too often', () => {
    expect(labelsOf(['b', ' a ', 'b', 'e\u0301', '\u00e9'])).toEqual(['b', 'a', '\u00e9'])
    const many = Array.from({ length: MAX_LABELS + 1 }, (_, index) => String(index))
    expect(labelsOf(many.slice(1))).toHaveLength(MAX_LABELS)
    expect(() => labelsOf(many)).toThrow(`--label: at most ${MAX_LABELS} labels are allowed.`)
    expect(() => labelsOf(['a', ''])).toThrow('--label: a label must not be empty.')
  })
})
