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
import { SQL } from '../../../src/service/store/postgres/run-statements.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

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
  const store = await openPostgresStore(url)
  onTestFinished(() => store.close())
  return store
}

describePostgres('on PostgreSQL', () => {
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
