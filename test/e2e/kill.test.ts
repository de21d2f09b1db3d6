/** The short version of `test/proof/kill.proof.ts`: `kill -9` once in each part of a run. */
import { expect, it } from 'vitest'
import { sweep } from '../support/kill-sweep.js'

it('loses no run, pays for none twice and breaks no file, wherever it is killed', async () => {
  const tally = await sweep([
    150,
    { at: 'create arrived' },
    { at: 'create accepted' },
    { at: 'create answered', afterMs: 0 },
    { at: 'look', number: 1, afterMs: 0 },
    { at: 'output', share: 0.5 },
  ])
  expect(tally.wrong).toEqual([])
  expect(tally.accepted).toBeGreaterThanOrEqual(4)
})
