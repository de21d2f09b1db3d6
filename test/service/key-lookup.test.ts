import { expect, test } from 'vitest'
import { createUseRecorder } from '../../src/service/http/key-lookup.js'

test('writes the use of a key once a minute, and that of the ephemeral key never; reports a failed write', async () => {
  const written: (readonly [number, number])[] = []
  const errors: unknown[] = []
  const recordKeyUse = async (id: number, usedAtMs: number) => {
    written.push([id, usedAtMs])
    if (id === 2) throw new Error('disk full')
  }
  const record = createUseRecorder({ recordKeyUse }, (error) => errors.push(error))
  for (const [key, nowMs] of [
    [1, 60_000],
    [1, 60_001],
    [2, 60_001],
    [1, 119_999],
    [1, 120_000],
    [1, 90_000],
    [0, 300_000],
  ] as const)
    record(key, nowMs)
  await new Promise(setImmediate)
  expect(written).toEqual([
    [1, 60_000],
    [2, 60_000],
    [1, 120_000],
  ])
  expect(errors).toHaveLength(1)
})
