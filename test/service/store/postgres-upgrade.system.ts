/** Nodes of two versions on one database: a rolling upgrade. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { errorCode } from '../../../src/host/system-error.js'
import { ACCOUNT_SQL } from '../../../src/service/store/postgres/accounts.js'
import { CONSOLE_SQL } from '../../../src/service/store/postgres/console.js'
import { createDatabase } from '../../../src/service/store/postgres/database.js'
import type { PreparedStatement } from '../../../src/service/store/postgres/driver.js'
import { FILE_SQL } from '../../../src/service/store/postgres/files.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { openSchema } from '../../../src/service/store/postgres/open-schema.js'
import { SQL } from '../../../src/service/store/postgres/run-statements.js'
import { describePostgres, STILL_CLOCK, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'
import { claimRun } from '../../support/runs.js'

const STATEMENTS: readonly PreparedStatement[] = [ACCOUNT_SQL, CONSOLE_SQL, FILE_SQL, SQL].flatMap(
  (statements): readonly PreparedStatement[] => Object.values(statements),
)

/** As a newer version does when its first node starts. */
async function addColumns(url: string, name: string): Promise<void> {
  const server = await sharedPostgres()
  const tables = await server.query("SELECT tablename FROM pg_tables WHERE schemaname = 'rushes'", url)
  for (const { tablename } of tables)
    await server.query(`ALTER TABLE rushes.${tablename} ADD COLUMN ${name} text DEFAULT 'new'`, url)
}

async function opened(url: string) {
  const store = await openPostgresStore(url, { clock: STILL_CLOCK })
  onTestFinished(() => store.close())
  return store
}

describePostgres('on PostgreSQL', () => {
  test('format 4 is upgraded beside its nodes, which keep claiming, and its runs are claimed by model', async () => {
    const url = await temporaryDatabase()
    await openSchema(url, { migrations: [] })
    const node = new pg.Client({ connectionString: url, options: '-c search_path=rushes' })
    await node.connect()
    onTestFinished(() => node.end())
    await node.query("INSERT INTO accounts (name, created_at) VALUES ('acme', 1)")
    const add = (id: string, model: string) =>
      node.query(
        `INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at)
         VALUES ($1, 1, $2, 'image', '{}', 0, 'queued', 4)`,
        [id, model],
      )
    for (const id of ['one', 'two']) await add(id, `acme/${id}`)
    await node.query("INSERT INTO workers (id, heartbeat_at) VALUES ('old', 1)")
    // A claim of a node of format 4 that is under way.
    await node.query('BEGIN')
    await node.query("SELECT 1 FROM workers WHERE id = 'old' FOR KEY SHARE")
    const upgrading = opened(url)
    const waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'rushes.workers'::regclass"
    const server = await sharedPostgres()
    await expect.poll(() => server.query(waits, url)).toHaveLength(1)
    await node.query("UPDATE runs SET status = 'processing', owner = 'old' WHERE id = 'one'")
    await node.query('COMMIT')
    const store = await upgrading
    expect(await server.query('SELECT version FROM rushes.format', url)).toEqual([{ version: 6 }])

    await node.query("INSERT INTO workers (id, heartbeat_at) VALUES ('older', 1)")
    await add('three', 'acme/two')
    await store.renewLease('me', [{ name: 'acme/two', kind: 'image' }])
    expect(await store.listModels()).toEqual([
      { name: 'acme/one', kind: 'image', workers: 0, queued: 0, processing: 1 },
      { name: 'acme/two', kind: 'image', workers: 1, queued: 2, processing: 0 },
    ])
    for (const id of ['two', 'three'])
      expect(await claimRun(store, 'me', { models: ['acme/two'] })).toMatchObject({ id })
    expect((await store.verify()).problems).toEqual([])
    expect(await store.findRun('one', 1)).toMatchObject({ status: 'processing' })

    await node.query(
      "INSERT INTO keys (account_id, name, hash, created_at) VALUES (1, 'ci', 'h', 1), (1, 'cd', 'i', 1)",
    )
    await store.archiveKey(1, 5)
    const enable = (id: number) => node.query('UPDATE keys SET disabled = false WHERE id = $1', [id])
    await expect(enable(1)).rejects.toMatchObject({ code: '23514' })
    await enable(2)
    expect(await store.findKey('h', 0)).toMatchObject({ disabled: true })
  })

  test('a migration holds no locks of an earlier one, so it cannot deadlock with creates', async () => {
    const url = await temporaryDatabase()
    await openSchema(url, { migrations: [] })
    const node = new pg.Client({ connectionString: url, options: '-c search_path=rushes' })
    await node.connect()
    onTestFinished(() => node.end())
    // A create of a node of format 4: first the keys, then the runs.
    await node.query('BEGIN')
    await node.query('LOCK TABLE keys IN ROW EXCLUSIVE MODE')
    const upgrading = openSchema(url)
    const waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'rushes.keys'::regclass"
    const server = await sharedPostgres()
    await expect.poll(() => server.query(waits, url)).toHaveLength(1)
    await node.query('LOCK TABLE runs IN ROW EXCLUSIVE MODE')
    await node.query('COMMIT')
    await upgrading
  })

  test('every prepared statement works after a newer version has added columns', async () => {
    const url = await temporaryDatabase()
    await opened(url)
    const client = new pg.Client({ connectionString: url, options: '-c search_path=rushes' })
    await client.connect()
    onTestFinished(() => client.end())
    /** With nulls: the plan is checked before it is carried out. */
    const codeOf = async ({ name, text }: PreparedStatement) => {
      const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
      try {
        await client.query({ name, text, values: Array(count).fill(null) })
        return undefined
      } catch (error) {
        return errorCode(error)
      }
    }
    const isPrepared = new Set<string>()
    for (const statement of STATEMENTS)
      if (!/^(42|26)/.test((await codeOf(statement)) ?? '')) isPrepared.add(statement.name)
    expect(STATEMENTS.map(({ name }) => name).filter((name) => !isPrepared.has(name))).toEqual([])
    await addColumns(url, 'added')
    const failed = []
    for (const statement of STATEMENTS) if ((await codeOf(statement)) === '0A000') failed.push(statement.name)
    expect(failed).toEqual([])
  })

  test('a statement that returns other columns than it was prepared for is prepared anew', async () => {
    const url = await temporaryDatabase()
    await opened(url)
    const database = createDatabase({ url, maxConnections: 2 })
    onTestFinished(() => database.close())
    const row = { name: 'row', text: 'SELECT * FROM format' }
    const changed = { name: 'changed', text: 'UPDATE format SET checked_at = checked_at + 1 RETURNING *' }
    const count = database.merged<number, unknown>(
      async (tx, changes) => {
        const [found] = await tx.commitWith(changed)
        return changes.map(() => ({ value: found }))
      },
      () => 1,
    )
    const all = async () => [
      await database.get(row),
      (await database.transaction((tx) => tx.commitWith(changed)))[0],
      await count(1, 1),
    ]
    const before = await all()
    await addColumns(url, 'added')
    expect(await all()).toEqual(
      before.map((found, at) => ({
        ...(found as object),
        added: 'new',
        checked_at: [2, 3, 4][at],
      })),
    )
  })
})
