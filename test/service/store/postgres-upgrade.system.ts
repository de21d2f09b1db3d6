/** Nodes of two versions on one database: a rolling upgrade. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { errorCode } from '../../../src/host/system-error.js'
import { ACCOUNT_SQL } from '../../../src/service/store/postgres/account-statements.js'
import { CONSOLE_SQL } from '../../../src/service/store/postgres/console-statements.js'
import { createDatabase } from '../../../src/service/store/postgres/database.js'
import type { Statement } from '../../../src/service/store/postgres/driver.js'
import { SQL as FILE_SQL } from '../../../src/service/store/postgres/file-records.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { SQL } from '../../../src/service/store/postgres/run-statements.js'
import { USER_SQL } from '../../../src/service/store/postgres/user-statements.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

const STATEMENTS: readonly Statement[] = [ACCOUNT_SQL, CONSOLE_SQL, FILE_SQL, SQL, USER_SQL].flatMap(
  (statements): readonly Statement[] => Object.values(statements),
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
    const codeOf = async ({ name, text }: Statement) => {
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

  test('what nodes of the version before create and finish is listed, rendered and found', async () => {
    const url = await temporaryDatabase()
    const store = await opened(url)
    const accountId = await store.ensureAccount({ name: 'acme', credits: 9, nowMs: 0 })
    await store.renewLease('me')
    const old = new pg.Client({ connectionString: url, options: '-c search_path=rushes' })
    await old.connect()
    onTestFinished(() => old.end())
    const images = ['a'.repeat(64)]
    const input = {
      prompt: `${'p'.repeat(3_000)} end`,
      aspect_ratio: '16:9',
      image_urls: [{ sha256: images[0] }],
    }
    const values = [accountId, null, 'm', 'image', JSON.stringify(input), 1, 5, images, input.prompt]
    for (const id of ['run_1', 'run_2']) await old.query(BEFORE.addRun, [id, ...values])

    const listed = (await store.listRuns({ accountId, limit: 5 })).runs
    expect(listed).toMatchObject([{ id: 'run_2', aspectRatio: undefined }, { id: 'run_1' }])
    expect(listed.map(({ prompt }) => prompt?.length)).toEqual([1_000, 1_000])
    const search = async (text: string) => (await store.listRuns({ accountId, search: text, limit: 5 })).runs
    expect([await search('pp'), await search('end')]).toMatchObject([[{}, {}], []])
    expect(await store.claimRun('me', [], 6)).toMatchObject({ id: 'run_1', input })
    const output = ['t', 'a.png', 'image/png', 3, 'b'].map((value) => [value])
    await old.query(BEFORE.finishRun, ['run_1', 'me', 7, ...output])
    expect(await store.findRun('run_1', accountId)).toMatchObject({
      status: 'succeeded',
      outputs: [{ token: 't', name: 'a.png' }],
    })
    expect(await store.findOutput('t', 'a.png')).toMatchObject({ bytes: 3 })
    expect((await store.verify()).problems).toEqual([])

    // A queued run that names the output needs it.
    const files = [{ kind: 'output', key: 't/a.png' } as const]
    const run = { id: 'run_3', accountId, keyId: undefined, model: 'm', kind: 'image' } as const
    await store.addRun({ ...run, input: {}, price: 0, createdAtMs: 8, files }, () => {})
    expect(await store.markOldFiles('output', 100, 100)).toBe(0)
    await store.claimRun('me', ['run_3'], 9, 'requested')
    await store.finishRun({ id: 'run_3', owner: 'me', nowMs: 10 }, [])
    expect(await store.markOldFiles('output', 7, 100)).toBe(0)
    expect(await store.markOldFiles('output', 8, 100)).toBe(1)
  })
})

/** Statements of format 3. */
const BEFORE = {
  addRun: `
    WITH paid AS (
      UPDATE accounts SET balance = balance - $7 WHERE id = $2 AND $7 <> 0
    ),
    spent AS (
      UPDATE keys SET spent = spent + $7, used = used + 1 WHERE id = $3
    ),
    added AS (
      INSERT INTO runs (id, account_id, key_id, model, kind, input, price, status, created_at, images, prompt)
      VALUES ($1, $2, $3::bigint, $4, $5, $6, $7::bigint, 'queued', $8::bigint, $9::text[], $10::text)
    )
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
    SELECT $2, 'charge', -$7::bigint, $1, $3::bigint, $8::bigint WHERE $7::bigint <> 0`,
  finishRun: `
    WITH finished AS (
      UPDATE runs SET status = 'succeeded', finished_at = $3
      WHERE id = $1 AND owner = $2 AND status = 'processing'
      RETURNING id
    ),
    added AS (
      INSERT INTO outputs (run_id, position, token, name, content_type, bytes, sha256)
      SELECT finished.id, output.position - 1, output.token, output.name, output.content_type, output.bytes, output.sha256
      FROM finished, unnest($4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
        WITH ORDINALITY AS output (token, name, content_type, bytes, sha256, position)
    )
    SELECT id FROM finished`,
}
