/** Prices in whole millionths. */
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { ModelInput, Price } from '../../src/protocol/models.js'
import { amountOf, amountText, millionthsOf, parseAmount, sumOf } from '../../src/protocol/price.js'

const LARGEST = Number.MAX_SAFE_INTEGER

/** The price of an input, in millionths. `properties`: what the schema of its model says of defaults. */
const priced = (price: Partial<Price> | undefined, input: ModelInput, properties = {}) =>
  millionthsOf(
    {
      price: price && { run: 1, factors: {}, ...price },
      input: { type: 'object', title: '', description: '', required: [], properties },
    },
    input,
  )

describe('a price in millionths', () => {
  it.each([
    ['without factors', 'run: 0.4', '', 400_000],
    [
      'with two factors',
      'run: 0.4, factors: {size: {m: 1.5}, seconds: {10: 2}}',
      'size: m, seconds: "10"',
      1_200_000,
    ],
    ['of a value without a factor', 'factors: {size: {m: 2}}', 'size: l', 1_000_000],
    ['without the value', 'factors: {size: {m: 2, undefined: 9}}', '', 1_000_000],
    ['of a boolean', 'factors: {hd: {true: 2, false: 3}}', 'hd: false', 3_000_000],
    ['of a list', 'factors: {loras: {a: 9}}', 'loras: [a]', 1_000_000],
    ['of a map', 'factors: {region: {x: 9, y: 0.5}}', 'region: {toString: 1, valueOf: 1}', 9_000_000],
    ['rounded up', 'run: 0.333333, factors: {size: {m: 0.1}}', 'size: m', 33_334],
    ['that is whole', 'run: 2.5, factors: {size: {m: 2}}, round_up: true', '', 3_000_000],
    ['of the smallest amount', 'run: 0.000001, factors: {size: {m: 0.000001}}', 'size: m', 1],
    ['too large', 'run: 1000000000, factors: {size: {m: 1000000000}}', 'size: m', LARGEST],
  ])('%s: %s, for %s', (_, price, input, expected) => {
    expect(priced(parse(`{${price}}`), parse(`{${input}}`))).toBe(expected)
  })

  it('is missing where the model has none', () => {
    expect(priced(undefined, { size: 'm' })).toBeUndefined()
  })

  it('counts the default of a parameter that is left out, and not of one that is sent', () => {
    const price = { factors: { steps: { 20: 2, 30: 3 } } }
    const inputs = [{}, { steps: 30 }, { steps: 40 }]
    expect(inputs.map((input) => priced(price, input, { steps: { default: 20 } }))).toEqual([
      2_000_000, 3_000_000, 1_000_000,
    ])
  })

  it.each(['constructor', '__proto__'])('ignores inherited names: %s', (name) => {
    const factors = JSON.parse(`{"${name}": {"m": 2}, "size": {"m": 2}}`)
    expect(priced({ factors }, {})).toBe(1_000_000)
    expect(priced({ factors }, { size: name })).toBe(1_000_000)
    expect(priced({ factors }, JSON.parse(`{"${name}": "m"}`))).toBe(2_000_000)
  })
})

it.each<[readonly (number | undefined)[], number, number]>([
  [[100_000, 200_000], 300_000, 0],
  [[400_000, undefined, 0, undefined], 400_000, 2],
  [[LARGEST, LARGEST], LARGEST, 0],
  [Array.from({ length: 10_000 }, () => 333_333), 3_333_330_000, 0],
])('the sum of estimates %j is %i, and %i have no price', (estimates, millionths, withoutPrice) => {
  expect(sumOf(estimates)).toEqual({ millionths, withoutPrice })
})

it.each([
  ['12.5', 12_500_000],
  ['0.000001', 1],
  ['999999999.999999', 999_999_999_999_999],
])('an amount %j is %d millionths', (text, millionths) => {
  expect(parseAmount(text)).toBe(millionths)
})

it('an amount is no other text', () => {
  const others = ['', '.5', '5.', '-1', '1e3', '1,5', ' 1', '0.0000001', '1234567890', '１', '0x1']
  expect(others.filter((text) => parseAmount(text) !== undefined)).toEqual([])
})

it.each([
  [0, '0 USD'],
  [400_000, '0.4 USD'],
  [999_999_999_999_999, '999999999.999999 USD'],
])('an amount %d millionths are %j', (millionths, text) => {
  expect(amountText(millionths, 'USD')).toBe(text)
  expect(`${amountOf(millionths)} USD`).toBe(text)
})
