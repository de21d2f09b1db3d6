/** Text from a server, made safe to print. */
import { describe, expect, it } from 'vitest'
import {
  onOneLine,
  printable,
  printableJson,
  quoteWord,
  type Shell,
  shellOf,
  shortened,
  variableLine,
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

describe('the shell of the user', () => {
  it.each([
    ['posix', 'linux', { PROMPT: '%' }],
    ['posix', 'darwin', {}],
    ['posix', undefined, undefined],
    ['posix', 'win32', { SHELL: '/usr/bin/bash', PROMPT: '$P$G' }],
    ['cmd', 'win32', { PROMPT: '$P$G' }],
    ['powershell', 'win32', { PSModulePath: 'C:\\' }],
  ])('is %s on %s with %j', (shell, platform, env) => {
    expect(shellOf({ ...(platform && { platform }), ...(env && { env }) })).toBe(shell)
  })

  it.each<[Shell, string, string, string]>([
    ['posix', 'C:\\out', `'C:\\out'`, `export NAME='C:\\out'`],
    ['cmd', 'C:\\out', 'C:\\out', 'set "NAME=C:\\out"'],
    ['powershell', 'C:\\out', 'C:\\out', `$env:NAME = 'C:\\out'`],
    ['cmd', 'a red fox', '"a red fox"', 'set "NAME=a red fox"'],
    ['powershell', 'a fox for $5', `'a fox for $5'`, `$env:NAME = 'a fox for $5'`],
    ['powershell', "it's\nred", `'it''s\nred'`, `$env:NAME = 'it''s\nred'`],
    ['cmd', '-x', '"-x"', 'set "NAME=-x"'],
  ])('%s quotes %j as %s, and sets it with %s', (shell, value, word, line) => {
    expect([quoteWord(value, shell), variableLine('NAME', value, shell)]).toEqual([word, line])
  })
})
