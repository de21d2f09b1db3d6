import { expect, it } from 'vitest'
import { findInexact } from '../../src/protocol/parameters.js'

it.each<[unknown, readonly string[] | undefined]>([
  [{ seed: 2 ** 53 - 1, scale: 0.1, deep: [null, 'x', { n: -1e300 / 3e300 }] }, undefined],
  [{ seed: 2 ** 53 }, ['seed']],
  [{ input: { list: [1, -(2 ** 60)] } }, ['input', 'list', '1']],
  [{ seed: JSON.parse('1e400') }, ['seed']],
])('finds the number that a parser may have changed: %j at %j', (value, path) => {
  expect(findInexact(value)).toEqual(path)
})
