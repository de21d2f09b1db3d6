/** 100 kills at random moments of 100 runs at a provider: no run is sent twice. `npm run proof -- job-kills`. */
import { expect, test } from 'vitest'
import { figuresOf, killNodes } from '../support/job-kills.js'
import { hasPostgres, temporaryDatabase } from '../support/postgres.js'
import { tableOfFigures } from '../support/proof/figures.js'

const KILLS = Number(process.env.PROOF_KILLS ?? 100)
const record = tableOfFigures()

test('a paid run is sent once, with SQLite', async () => {
  const tally = await killNodes({ kills: KILLS, runs: KILLS })
  record('SQLite', figuresOf(tally))
  expect(tally).toMatchObject({ runs: KILLS, repeated: [], others: [] })
  expect(tally.creates).toBeGreaterThanOrEqual(tally.succeeded)
})

test.skipIf(!hasPostgres)('a paid run is sent once, with two nodes on PostgreSQL', async () => {
  const tally = await killNodes({
    kills: KILLS,
    runs: KILLS,
    nodes: 2,
    databaseUrl: await temporaryDatabase(),
  })
  record('two nodes on PostgreSQL', figuresOf(tally))
  expect(tally).toMatchObject({ runs: KILLS, repeated: [], others: [] })
  expect(tally.creates).toBeGreaterThanOrEqual(tally.succeeded)
})
