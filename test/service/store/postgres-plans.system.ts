/** How PostgreSQL finds a run on a new database, of which it has no statistics. */
import { expect, test } from 'vitest'
import { CONSOLE_SQL } from '../../../src/service/store/postgres/console.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { SQL } from '../../../src/service/store/postgres/run-statements.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

describePostgres('on a new database', () => {
  test.each([
    ['the run of a status request', SQL.findRun.text, `'run_1'`],
    ['the runs of an update', CONSOLE_SQL.findRuns.text, `ARRAY['run_1']`],
  ])('%s is found by its id, and not among all runs of its account', async (_, text, id) => {
    const url = await temporaryDatabase()
    await (await openPostgresStore(url)).close()
    const statement = text.replaceAll('$1', id).replaceAll('$2', '1')
    const session = `SET search_path TO rushes; SET enable_seqscan TO off; EXPLAIN ${statement}`
    const plan = JSON.stringify(await (await sharedPostgres()).query(session, url))
    expect(plan).toContain('runs_id_key')
    expect(plan).not.toContain('runs_of_account')
  })
})
