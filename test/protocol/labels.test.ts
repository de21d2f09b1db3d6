/** Labels: their form, and what is not one. */
import { describe, expect, it } from 'vitest'
import { labelsOf } from '../../src/cli/flags/values.js'
import { asLabel, labelProblem, MAX_LABELS } from '../../src/protocol/text.js'

const EMPTY = 'a label must not be empty'
const CONTROL = 'a label must not contain control characters'
const LONG = 'a label must have at most 100 characters'

describe('a label', () => {
  it.each<[string, string, string, string | undefined]>([
    ['is a text', 'spring campaign', 'spring campaign', undefined],
    ['loses spaces at its ends', '  spring\t', 'spring', undefined],
    ['keeps case and punctuation', 'Q3/2026: "A,B"', 'Q3/2026: "A,B"', undefined],
    ['is composed', 'cafe\u0301', 'caf\u00e9', undefined],
    ['may be of any script', '春 кампания نمونه', '春 кампания نمونه', undefined],
    ['may have joined characters', '👩‍🎨 می‌خواهم', '👩‍🎨 می‌خواهم', undefined],
    ['must not be empty', '', '', EMPTY],
    ['must not be blank', ' \n ', '', EMPTY],
    ['has no line end', 'a\nb', 'a\nb', CONTROL],
    ['has no escape', 'a\u001b[31m', 'a\u001b[31m', CONTROL],
    ['has no C1 control', 'a\u009b', 'a\u009b', CONTROL],
    ['has no override of direction', 'a\u202eb', 'a\u202eb', CONTROL],
    ['has no half of a pair', 'a\ud83e', 'a\ud83e', CONTROL],
    ['may have 100 characters', '🦊'.repeat(100), '🦊'.repeat(100), undefined],
    ['has no more', '🦊'.repeat(101), '🦊'.repeat(101), LONG],
  ])('%s: %j', (_, text, label, problem) => {
    expect(asLabel(text)).toBe(label)
    expect(labelProblem(asLabel(text))).toBe(problem)
  })
})

describe('the labels of a command', () => {
  it('keeps the order given, each label once', () => {
    expect(labelsOf(['b', ' a ', 'b', 'e\u0301', '\u00e9'])).toEqual(['b', 'a', '\u00e9'])
    expect(labelsOf()).toEqual([])
  })

  it('rejects empty labels, and too many, with the name of the flag', () => {
    expect(() => labelsOf(['a', ''])).toThrow(`--label: ${EMPTY}.`)
    const many = Array.from({ length: MAX_LABELS + 1 }, (_, index) => String(index))
    expect(labelsOf(many.slice(1))).toHaveLength(MAX_LABELS)
    expect(() => labelsOf(many)).toThrow(`--label: at most ${MAX_LABELS} labels are allowed.`)
  })
})
