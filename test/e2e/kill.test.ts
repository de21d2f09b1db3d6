/** The short version of `test/proof/kill.proof.ts`: `kill -9` once in each part of a run. */
import { expect, it } from 'vitest'
import { sweep } from '../support/kill-sweep.js'

it('a command that is killed at any point loses no run, pays for none twice and breaks no file', async () => {
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
