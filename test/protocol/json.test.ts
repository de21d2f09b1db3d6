import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { integerOf, readJson, writeJson } from '../../src/protocol/json.js'

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
    ['12345678901234567e1', Number('12345678901234567e1')],
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
        fc.string({ unit: 'binary' }),
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

  it('matches JSON.stringify beside an integer that JSON.stringify rejects', () => {
    const value = { a: [1, 'x', undefined, Number.NaN, [], {}], b: undefined, c: { d: null } }
    for (const indent of [0, 2])
      expect(writeJson({ ...value, z: 2n ** 64n - 1n }, { indent })).toBe(
        JSON.stringify({ ...value, z: 1 }, null, indent).replace(/1(?=\n?\}$)/, LARGEST),
      )
    const circular: Record<string, unknown> = {}
    circular.self = circular
    expect(() => writeJson(circular)).toThrow('circular')
  })

  it('of any depth is read with a long integer', () => {
    const depth = 200_000
    expect(() => readJson(`${'['.repeat(depth)}${LARGEST}${']'.repeat(depth)}`)).not.toThrow()
  })
})

describe('an integer', () => {
  it.each([
    ['7', 7],
    ['-0x1', undefined],
    ['0xffffffffffffffff', 18446744073709551615n],
    ['0o17', 15],
    ['1.0', undefined],
    ['', undefined],
    ['9'.repeat(1_000_000), undefined],
    ['-9223372036854775809', undefined],
  ])('is read as a number where that keeps its digits', (text, value) => {
    expect(integerOf(text)).toBe(value)
  })
})
