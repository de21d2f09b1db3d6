import { expect, test } from 'vitest'
import { createUseRecorder } from '../../src/service/http/key-lookup.js'
import { createManualClock } from '../support/clock.js'

test('writes the use of a key once a minute, and that of the ephemeral key never', async () => {
  const clock = createManualClock()
  const written: (readonly [number, number])[][] = []
  const record = createUseRecorder(
    async (uses) => void written.push([...uses]),
    clock,
    () => {},
  )
  for (const [key, nowMs] of [
    [1, 60_000],
    [1, 60_001],
    [2, 60_001],
    [1, 119_999],
    [3, 120_000],
    [1, 120_000],
    [1, 90_000],
    [0, 300_000],
  ] as const)
    record(key, nowMs)
  expect(written).toEqual([[[1, 60_000]]])
  await clock.advance(1_000)
  expect(written.slice(1)).toEqual([
    [
      [2, 60_000],
      [3, 120_000],
      [1, 120_000],
    ],
  ])
})

test('reports a failed write, and tries again in the next minute', async () => {
  const clock = createManualClock()
  const errors: unknown[] = []
  let count = 0
  const record = createUseRecorder(
    async () => {
      count++
      throw new Error('disk full')
    },
    clock,
    (error) => errors.push(error),
  )
  record(1, 60_000)
  record(1, 60_001)
  await clock.advance(1_000)
  record(1, 120_000)
  await new Promise(setImmediate)
  expect([count, errors.length]).toEqual([2, 2])
})
