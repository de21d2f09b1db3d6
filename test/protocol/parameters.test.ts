import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findInexact, isExact } from '../../src/protocol/parameters.js'

describe('a number as it is written', () => {
  it.each([
    ...'0 -0 0.0 1 1.0 +1 007 .5 5. 1e3 1E-7 0.1 1.50 1e21 5e-324'.split(' '),
    ...'9007199254740992 9007199254740994 0x1F 0o17 0e999999 1000000000000000000000'.split(' '),
  ])('%s is sent as the same number', (text) => {
    expect(isExact(text, Number(text))).toBe(true)
  })

  it.each([
    ...'9007199254740993 -9007199254740993 18446744073709551615 12345678901234567890'.split(' '),
    ...'0.1000000000000000055511151231257827 0.10000000000000001 3.14159265358979323846'.split(' '),
    ...'1e400 -1e400 1e-400 0x20000000000001 0o777777777777777777777 Infinity NaN x'.split(' '),
    '',
  ])('%s is not', (text) => {
    expect(isExact(text, Number(text))).toBe(false)
  })

  it('counts as exact when JSON.stringify prints the same whole number', () => {
    const digits = fc.bigInt({ min: -(2n ** 69n), max: 2n ** 69n })
    const near = fc.bigInt({ min: -50n, max: 50n }).map((offset) => 2n ** 53n + offset)
    fc.assert(
      fc.property(fc.oneof(digits, near), (whole) => {
        const value = Number(whole)
        expect(isExact(String(whole), value)).toBe(BigInt(JSON.stringify(value)) === whole)
      }),
    )
  })

  it('may have any form that a program writes for it', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const digits = String(value)
        const plain = digits.includes('e') ? digits : `${digits}${digits.includes('.') ? '' : '.'}000`
        for (const text of [digits, JSON.stringify(value), value.toExponential(), plain])
          expect(isExact(text, value)).toBe(true)
      }),
    )
  })
})

describe('a number that others have parsed', () => {
  it.each<[unknown, readonly string[] | undefined]>([
    [{ seed: 2 ** 53 - 1, scale: 0.1, deep: [null, 'x', { n: -1e300 / 3e300 }] }, undefined],
    [{ seed: 2 ** 53 }, ['seed']],
    [{ input: { list: [1, -(2 ** 60)] } }, ['input', 'list', '1']],
    [{ seed: JSON.parse('1e400') }, ['seed']],
  ])('%j may have been another one at %j', (value, path) => {
    expect(findInexact(value)).toEqual(path)
  })
})
