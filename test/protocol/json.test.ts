import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { integerOf, readJson, readTornJson, writeJson } from '../../src/protocol/json.js'
import { anyCharacter } from '../support/any-character.js'

const LARGEST = '18446744073709551615'

describe('JSON', () => {
  it.each([
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', 9007199254740993n],
    [LARGEST, 18446744073709551615n],
    ['-9223372036854775808', -9223372036854775808n],
    // Beyond 64 bits.
    ['18446744073709551616', 2 ** 64],
    ['12345678901234567.5', Number('12345678901234567.5')],
    [`[${LARGEST},${LARGEST} , {"a":${LARGEST}}]`, [2n ** 64n - 1n, 2n ** 64n - 1n, { a: 2n ** 64n - 1n }]],
    [`"${LARGEST}"`, LARGEST],
    [`["\\"${LARGEST}","\\\\",${LARGEST}]`, [`"${LARGEST}`, '\\', 18446744073709551615n]],
    [
      `{"\\u00011":"\\u00011","\\u0001":${LARGEST}}`,
      { '\u00011': '\u00011', '\u0001': 18446744073709551615n },
    ],
  ])('keeps the digits of an integer of 64 bits, and reads everything else as before: %s', (text, value) => {
    expect(readJson(text)).toEqual(value)
  })

  it.each([`{${LARGEST}:1}`, `0${LARGEST}`, `[1 ${LARGEST}]`, `--${LARGEST}`, `{"a":${LARGEST}`])(
    'that is invalid stays invalid with a long integer: %s',
    (text) => {
      expect(() => readJson(text)).toThrow(SyntaxError)
    },
  )

  it('survives being written and read at every indentation', () => {
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
        fc.string({ unit: anyCharacter }),
        fc.constantFrom('\u0001', `\u0001${LARGEST}`, `"\u0001${LARGEST}`, LARGEST, null, true, 1.5),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('\u00011', LARGEST)), tie('tree'), {
          maxKeys: 4,
          noNullPrototype: true,
        }),
      ),
    }))
    fc.assert(
      fc.property(tree, fc.constantFrom(0, 2), (value, indent) => {
        expect(readJson(writeJson(value, { indent }))).toEqual(value)
      }),
      { numRuns: 300 },
    )
  })

  it('with millions of escapes keeps the digits of an integer, whole and torn', () => {
    const text = `{"s":"${'\\n'.repeat(4_000_000)}","seed":${LARGEST},`
    const seed = 2n ** 64n - 1n
    expect(readJson(`${text}"end":0}`)).toMatchObject({ seed })
    expect(readTornJson(text)).toMatchObject({ seed })
  })

  it('skips strings, and reads numbers of any length', () => {
    const digits = '1'.repeat(6_000_000)
    const text = `{"image":"${digits}","number":${digits},"seed":${LARGEST}}`
    expect(readJson(text)).toMatchObject({ number: Number.POSITIVE_INFINITY, seed: 2n ** 64n - 1n })
  })

  it('of any depth is read with a long integer', () => {
    const depth = 50_000
    expect(() => readJson(`${'['.repeat(depth)}${LARGEST}${']'.repeat(depth)}`)).not.toThrow()
  })
})

it.each([
  ['7', 7],
  ['0xffffffffffffffff', 18446744073709551615n],
  ['0o17', 15],
  ['1.0', undefined],
  ['9'.repeat(1_000_000), undefined],
  ['-9223372036854775809', undefined],
])('an integer is read as a number where that keeps its digits: %.30s', (text, value) => {
  expect(integerOf(text)).toBe(value)
})

it.each([
  ['after a string', '{"id":"a"', { id: 'a' }],
  ['in a string', '{"id":"a', {}],
  ['after an escaped quote', '{"id":"a\\"', {}],
  ['after a number that may go on', '{"id":12', {}],
  ['after a whole number', '{"id":12,', { id: 12 }],
  ['in a name', '{"id":"a","na', { id: 'a' }],
  ['after an object', '{"run":{"x":{}},"id":"a","y":{', { run: { x: {} }, id: 'a', y: {} }],
  ['in a list', '{"list":[{"id":"x"},"y', { list: [{ id: 'x' }] }],
  [
    'after a name that objects have anyway',
    '{"__proto__":{"id":"x"},"id":"a",',
    { ['__proto__']: { id: 'x' }, id: 'a' },
  ],
  ['after a byte order mark', '\uFEFF{"id":"a",', { id: 'a' }],
  ['at once', '', undefined],
  ['nowhere', '{"id":"a"}', { id: 'a' }],
  ['in a page', '<p data="{" id="a"', undefined],
  ['after a comment', '{/* */"id":"a",', undefined],
  ['after the value', '{"id":"a"}, "id":"b"', { id: 'a' }],
  ['in a string with marks', '{"id":"a","message":"{ ] , \\" }', { id: 'a' }],
  ['after a string with a line end', '{"id":"a","message":"x\ny","n":', { id: 'a', message: 'x y' }],
])('JSON that broke off keeps the values that arrived: %s', (_, text, expected) => {
  expect(JSON.stringify(readTornJson(text))).toBe(JSON.stringify(expected))
})

it('JSON that broke off may have any number of levels', () => {
  expect(readTornJson(`{"id":"a","deep":${'['.repeat(100_000)}`)).toMatchObject({ id: 'a' })
})

it('JSON that broke off keeps the id once it has arrived, wherever the text ends', () => {
  const text = JSON.stringify({ data: { id: 'a"b\\', runs: [{ id: 'x' }] }, status: 'é🦊', n: 1 })
  const end = text.indexOf('","runs') + 1
  for (let length = 0; length <= text.length; length++) {
    const body = readTornJson(text.slice(0, length)) as { data?: { id?: string } } | undefined
    expect(body?.data?.id).toBe(length >= end ? 'a"b\\' : undefined)
  }
})
