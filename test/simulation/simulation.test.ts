/** Histories of a service that a seed decides. `npm run proof -- simulation` plays 20,000 of them. */
import { expect, test } from 'vitest'
import { playHistory } from './history.js'

/** As many as take a few seconds. */
const HISTORIES = 15

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
])('the history %i (full disk: %s)', async (seed, hasFullDisk) => {
  expect(await playHistory(seed, { hasFullDisk })).toEqual([])
})
