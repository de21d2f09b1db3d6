import { expect, it } from 'vitest'
import { type Slot, waitMs } from '../../src/limiter/window.js'

const LIMIT = { requests: 3, windowMs: 10_000 }
const under = undefined
const slots = (...settled: (number | undefined)[]): Slot[] => settled.map((settledAtMs) => ({ settledAtMs }))

it.each([
  ['nothing is in use', [], 0, 0],
  ['one slot is left', [0, under], 5_000, 0],
  ['the oldest response frees a slot one window after it', [0, 2_000, 3_000], 5_000, 5_000],
  ['responses in any order', [3_000, 0, 2_000], 5_000, 5_000],
  ['a request in flight holds its slot', [under, 2_000, under], 5_000, 7_000],
  ['only a response can free a slot', [under, under, under], 5_000, Number.POSITIVE_INFINITY],
  ['a slot is free exactly one window after its response', [0, 2_000, 3_000], 10_000, 0],
  ['and not a millisecond before', [0, 2_000, 3_000], 9_999, 1],
  ['more in use than allowed: the surplus goes first', [0, 1_000, 2_000, 3_000, under], 5_000, 7_000],
])('the arithmetic of the window: %s', (_, settled, nowMs, expected) => {
  expect(waitMs(slots(...settled), LIMIT, nowMs)).toBe(expected)
})
