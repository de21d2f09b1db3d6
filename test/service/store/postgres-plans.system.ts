/** How PostgreSQL finds a run on a new database, of which it has no statistics. */
import { expect, test } from 'vitest'
import { consoleStatements } from '../../../src/service/store/console.js'
import { POSTGRES } from '../../../src/service/store/postgres/database.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { queueStatements } from '../../../src/service/store/queue.js'
import { runStatements } from '../../../src/service/store/runs.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

describePostgres('on a new database', () => {
  test.each([
    ['the run of a status request', runStatements(POSTGRES).findRun, `'run_1'`],
    ['the runs of an update', consoleStatements(POSTGRES).findRuns, `ARRAY['run_1']`],
  ])('%s is found by its id without reading all runs of its account', async (_, text, id) => {
    const url = await temporaryDatabase()
    await (await openPostgresStore(url)).close()
    const statement = text.replaceAll('$1', id).replaceAll('$2', '1')
    const session = `SET search_path TO rushes; SET enable_seqscan TO off; EXPLAIN ${statement}`
    const plan = JSON.stringify(await (await sharedPostgres()).query(session, url))
    expect(plan).toContain('runs_id_key')
    expect(plan).not.toContain('runs_of_account')
  })

  test.each([
    [20, 'before', 400],
    [20, 'after', 400],
    [5_000, 'before', 400],
    [5_000, 'after', 400],
  ])(
    'a claim reads few pages of a long queue of %i accounts for other models, %s statistics are gathered',
    async (accounts, when, limit) => {
      const url = await temporaryDatabase()
      await (await openPostgresStore(url)).close()
      const server = await sharedPostgres()
      await server.query(
        `SET search_path TO rushes;
       INSERT INTO accounts (id, name, created_at) SELECT i, 'account ' || i, 0 FROM generate_series(1, ${accounts}) AS i;
       INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at)
       SELECT 'run_' || i, 1 + i % ${accounts}, CASE WHEN i = 20019 THEN 'acme/mine' ELSE 'acme/other' END, 'image', '{}', 0, 'queued', 0
       FROM generate_series(0, 20019) AS i;
       INSERT INTO workers (id, heartbeat_at) VALUES ('me', 0)`,
        url,
      )
      if (when === 'after') await server.query('ANALYZE rushes.runs, rushes.turns', url)
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        const session = `SET search_path TO rushes; SET enable_seqscan TO off; SET plan_cache_mode TO ${mode};
        PREPARE claim AS ${queueStatements(POSTGRES).nextRun}; BEGIN`
        const claim = `EXECUTE claim (ARRAY['acme/mine', 'acme/none'], 252, ARRAY['acme/none'])`
        const plan = await server.query(`${session}; EXPLAIN (ANALYZE, BUFFERS, TIMING off) ${claim}`, url)
        const [, pages] = /Buffers: shared hit=(\d+)/.exec(JSON.stringify(plan)) ?? []
        expect(Number(pages), mode).toBeLessThan(limit)
        expect(await server.query(`${session}; ${claim}`, url)).toMatchObject([
          { account_id: String(1 + (20_019 % accounts)) },
        ])
      }
    },
  )
})
