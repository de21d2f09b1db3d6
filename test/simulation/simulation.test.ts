/** Histories of a service that a seed decides. With `TMPDIR=/dev/shm` they do not wait for the disk. */
import { expect, test } from 'vitest'
import { PROOF } from '../support/proof.js'
import { playHistory } from './history.js'

/** Take a few seconds. */
const HISTORIES = 15 * PROOF

test('in every history, a run is paid for once, ends, and its credits match the ledger, also with a full disk', async () => {
  for (let seed = 1; seed <= HISTORIES; seed++)
    expect({ seed, wrong: await playHistory(seed, { hasFullDisk: seed % 3 === 0 }) }).toEqual({
      seed,
      wrong: [],
    })
})

/** Seeds that have found a fault. */
test.each([
  [26, false],
  [37, false],
  [41, false],
  [66, true],
  [410, false],
  [2437, false],
])('the history %i (full disk: %s)', async (seed, hasFullDisk) => {
  expect(await playHistory(seed, { hasFullDisk })).toEqual([])
})
