import { describe, expect, it } from 'vitest'
import { held, type Slot, waitMs } from '../../src/limiter/window.js'

const LIMIT = { requests: 3, windowMs: 10_000 }
const under = undefined
const places = (...settled: (number | undefined)[]): Slot[] => settled.map((settledAtMs) => ({ settledAtMs }))

describe('the arithmetic of the window', () => {
  it.each([
    ['nothing is in use', [], 0, 0],
    ['one place is left', [0, under], 5_000, 0],
    ['the oldest answer frees a place one window after it', [0, 2_000, 3_000], 5_000, 5_000],
    ['answers in any order', [3_000, 0, 2_000], 5_000, 5_000],
    ['a request on its way holds its place', [under, 2_000, under], 5_000, 7_000],
    ['only an answer can free a place', [under, under, under], 5_000, Number.POSITIVE_INFINITY],
    ['a place is free exactly one window after its answer', [0, 2_000, 3_000], 10_000, 0],
    ['and not a millisecond before', [0, 2_000, 3_000], 9_999, 1],
    ['more in use than allowed: the surplus goes first', [0, 1_000, 2_000, 3_000, under], 5_000, 7_000],
  ])('%s', (_, settled, nowMs, expected) => {
    expect(waitMs(places(...settled), LIMIT, nowMs)).toBe(expected)
  })

  it('what is free is no longer held', () => {
    expect(held(places(0, 1_000, under), LIMIT, 10_500)).toEqual(places(1_000, under))
  })
})
