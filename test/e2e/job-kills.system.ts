/** The short version of `test/proof/job-kills.proof.ts`. */
import { expect, test } from 'vitest'
import { killNodes } from '../support/job-kills.js'
import { hasPostgres, temporaryDatabase } from '../support/postgres.js'

test('a paid run is sent once while its service is killed at random moments', async () => {
  const tally = await killNodes({ kills: 5, runs: 10 })
  expect(tally).toMatchObject({ runs: 10, repeated: [], others: [] })
  expect([tally.succeeded + tally.unknown, tally.succeeded > 0]).toEqual([10, true])
})

test.skipIf(!hasPostgres)('a paid run is sent once while two nodes are killed in turn', async () => {
  const tally = await killNodes({ kills: 6, runs: 10, nodes: 2, databaseUrl: await temporaryDatabase() })
  expect(tally).toMatchObject({ runs: 10, repeated: [], others: [] })
  expect([tally.succeeded + tally.unknown, tally.succeeded > 0]).toEqual([10, true])
})
