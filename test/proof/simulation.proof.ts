/**
 * 20,000 histories of a service. `npm run proof -- simulation`; PROOF_HISTORIES plays fewer, from the seed PROOF_FIRST on. With
 * `TMPDIR=/dev/shm` it does not wait for the disk.
 */
import { expect, test } from 'vitest'
import { playHistory } from '../simulation/history.js'
import { tableOfFigures } from '../support/proof/figures.js'

const HISTORIES = Number(process.env.PROOF_HISTORIES ?? 20_000)
const FIRST = Number(process.env.PROOF_FIRST ?? 1)
const record = tableOfFigures()

test('in every history, a run is paid for once, ends, and its credits match the ledger', {
  timeout: 8 * 3_600_000,
}, async () => {
  const wrong: string[] = []
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed++)
    wrong.push(
      ...(await playHistory(seed, { hasFullDisk: seed % 3 === 0 })).map((problem) => `${seed}: ${problem}`),
    )
  record('histories', { first: FIRST, played: HISTORIES, wrong: wrong.length })
  expect(wrong).toEqual([])
})
