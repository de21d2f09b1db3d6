/** Creates and sweeps that take the same file at the same moment. What both databases share: test/contract/file-records.ts. */
import { expect, onTestFinished, test } from 'vitest'
import { fileStatements } from '../../../src/service/store/file-records.js'
import { POSTGRES } from '../../../src/service/store/postgres/database.js'
import { createClient } from '../../../src/service/store/postgres/driver.js'
import { describePostgres, openTestStore, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'
import { newRun } from '../../support/runs.js'

/** With a stored image and a connection of its own. */
async function openWithImage() {
  const url = await temporaryDatabase()
  const store = await openTestStore(url)
  const accountId = await store.ensureAccount({ name: 'acme', credits: 0, nowMs: 0 })
  const key = 'a1b2'
  const client = createClient(url)
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('SET search_path = rushes')
  await client.query("INSERT INTO files VALUES ('input', 'a1b2', 'a1b2', 1, 0)")
  const create = (keys = [key]) => {
    const files = keys.map((each) => ({ kind: 'input', key: each }) as const)
    return store.addRun(newRun({ id: 'run', accountId, files }), () => {})
  }
  const sweep = async () => (await store.removeOldFiles('input', 100)).length
  const isWaiting = async () => {
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM files%FOR NO KEY UPDATE%'`
    await expect.poll(async () => (await sharedPostgres()).query(waiting, url)).toHaveLength(1)
  }
  return { store, client, create, sweep, isWaiting, accountId }
}

const ADD_RUN = `
  INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at)
  VALUES ('raw', 1, 'm', 'image', '{}', 0, 'queued', 1)`

describePostgres('on PostgreSQL', () => {
  test('a sweep skips an image that a create is taking, and keeps it afterwards', async () => {
    const { client, sweep } = await openWithImage()
    await client.query('BEGIN')
    await client.query("SELECT 1 FROM files WHERE key = 'a1b2' FOR NO KEY UPDATE")
    await client.query(ADD_RUN)
    await client.query("INSERT INTO run_files VALUES ('raw', 'input', 'a1b2')")
    expect(await sweep()).toBe(0)
    await client.query('COMMIT')
    expect(await sweep()).toBe(0)
    // The run has ended.
    await client.query('DELETE FROM run_files')
    expect(await sweep()).toBe(1)
  })

  test.each([true, false])(
    'a create waits for a sweep that checks its image (removes its record: %s)',
    async (removes) => {
      const { client, create, isWaiting, sweep } = await openWithImage()
      await client.query('BEGIN')
      await client.query("SELECT 1 FROM files WHERE key = 'a1b2' FOR UPDATE")
      const created = create()
      await isWaiting()
      if (removes) await client.query("DELETE FROM files WHERE key = 'a1b2'")
      await client.query('COMMIT')
      expect(await created).toEqual(removes ? { refused: 'file_removed' } : { id: 'run' })
      expect(await sweep()).toBe(0)
    },
  )

  test.each([[['a0', 'a1b2']], [['a1b2', 'a0']]])(
    'creates take images in one order, whatever order they name them in: %j',
    async (keys) => {
      const { client, create, isWaiting } = await openWithImage()
      await client.query("INSERT INTO files VALUES ('input', 'a0', 'a0', 1, 0)")
      await client.query('BEGIN')
      await client.query("SELECT 1 FROM files WHERE key = 'a1b2' FOR NO KEY UPDATE")
      const created = create(keys)
      await isWaiting()
      const free = await client.query("SELECT key FROM files WHERE key = 'a0' FOR NO KEY UPDATE SKIP LOCKED")
      await client.query('COMMIT')
      expect(free.rows).toEqual([])
      expect(await created).toEqual({ id: 'run' })
    },
  )

  // The table of the id has one row.
  test.each(Object.entries(fileStatements(POSTGRES)).filter(([name]) => name !== 'databaseId'))(
    '%s looks at no more than it needs: an index leads to it',
    async (_, text) => {
      const { client } = await openWithImage()
      await client.query('SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan')
      await client.query(`PREPARE asked AS ${text}`)
      const values = [...new Set(text.match(/\$\d/g))].map(() => 'NULL')
      const { rows } = await client.query(`EXPLAIN EXECUTE asked (${values})`)
      expect(JSON.stringify(rows)).not.toContain('Seq Scan')
    },
  )
})
