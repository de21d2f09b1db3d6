import {
  cpSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import pg from 'pg'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import type { Row } from '../../src/host/database.js'
import { openAdministration } from '../../src/service/admin.js'
import { openS3Storage } from '../../src/service/files/s3-storage.js'
import { migrateData } from '../../src/service/migrate.js'
import { PREVIEW_SET } from '../../src/service/models/model-set.js'
import { openPostgresStore } from '../../src/service/store/postgres/index.js'
import { openServiceDatabase, openSqliteStore } from '../../src/service/store/sqlite/index.js'
import {
  addAccount,
  ask,
  created,
  createInstantEngine,
  createTestService,
  ended,
  FOX,
  finished,
  ONE_PIXEL_URL,
  runOf,
  type TestService,
  temporaryFolder,
  until,
} from '../support/index.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../support/postgres.js'
import { claimRun, newRun } from '../support/runs.js'
import { hasS3rver, inEnvironment, startS3Store } from '../support/s3-store.js'
import { runSql, type TestData } from '../support/test-database.js'

/** The data of a stopped service with runs of every status. */
async function grow() {
  const dataFolder = temporaryFolder()
  const engine = createInstantEngine()
  const service = await createTestService({
    dataFolder,
    models: PREVIEW_SET.models,
    engine: {
      async render(job) {
        if (String(job.input.prompt).includes('fails')) throw new Error('it does not work')
        return await engine.render(job)
      },
    },
  })
  const key = await addAccount(service, 'studio', {
    quota: 100,
    spendLimit: 500,
    allowedIps: ['127.0.0.0/8', '::1'],
    expiresAtMs: service.clock.now() + 86_400_000_000,
    rate: { requests: 200, windowMs: 10_000 },
  })
  const render = async (input: object, key = service.apiKey): Promise<string> =>
    (await finished(service, { ...FOX, input }, { key })).id
  await render({ prompt: 'a fox \u0000 and \ud800 half', quality: 'high' })
  const theirs = await render(
    { prompt: 'with an image', image_urls: [ONE_PIXEL_URL, 'https://example.com/a.png'] },
    key,
  )
  const failed = await render({ prompt: 'it fails' })
  const admin = await openAdministration({ dataFolder, clock: service.clock, make: false })
  await admin.createAccount('banned', 7)
  await admin.setBanned('banned', true)
  await admin.addCredits('studio', -3)
  await admin.close()
  await service.clock.runUntil(service.service.close())
  const store = openSqliteStore(join(dataFolder, 'service.db'))
  const [queued, rendering] = ['run_queued', 'run_rendering']
  await store.addRun(newRun({ id: queued, price: 1 }))
  // Of a worker that has died in a render.
  await store.addRun(newRun({ id: rendering, accountId: 2, keyId: 2, price: 1 }))
  expect((await claimRun(store, 'dead', { only: [rendering] }))?.id).toBe(rendering)
  // Another worker had lost it before.
  await store.releaseRuns('dead')
  await claimRun(store, 'dead', { only: [rendering], nowMs: 7 })
  const userId = (await store.addUser({ email: 'ann@example.com', accountId: 2, nowMs: 3 })) ?? 0
  await store.addUser({ email: 'bob@example.com', accountId: 1, nowMs: 4 })
  const session = { hash: 's', userId, fromLink: true, address: '127.0.0.1', userAgent: 'curl' }
  await store.addSession({ ...session, nowMs: 5, expiresAtMs: 4e12 })
  await store.setPassword(userId, 'scrypt', 's')
  await store.addLink({ hash: 'l', userId, nowMs: 5, expiresAtMs: 4e12 })
  await store.recordKeyUse(2, 60_000)
  await store.close()
  await runSql({ dataFolder, databaseUrl: undefined }, 'UPDATE runs SET lease_until = lease_until - 60000')
  return { service, dataFolder, key, theirs, failed, queued, rendering }
}

/** A closed database stays open in this process until its statements are collected; a copy is open nowhere. */
function copyOf(dataFolder: string): string {
  const copy = join(temporaryFolder(), 'data')
  cpSync(dataFolder, copy, { recursive: true, filter: (path) => basename(path) !== 'database-id' })
  return copy
}

const move = (dataFolder: string, databaseUrl: string, signal?: AbortSignal) =>
  migrateData({ dataFolder, databaseUrl, storage: undefined, signal })

const open = (dataFolder: string) =>
  openAdministration({ dataFolder, clock: { ...systemClock, now: () => 1 }, make: false })

/** The import waits for a lock of `goOn`: accounts, keys and runs are read, and other rows are not. */
async function moveHalf(dataFolder: string, databaseUrl: string, signal?: AbortSignal) {
  await (await openPostgresStore(databaseUrl)).close()
  const other = new pg.Client(databaseUrl)
  await other.connect()
  await other.query('BEGIN; LOCK TABLE rushes.outputs')
  const moving = move(dataFolder, databaseUrl, signal)
  moving.catch(() => {})
  const server = await sharedPostgres()
  await until('the import', async () => {
    const [row] = await server.query(
      'SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted',
      databaseUrl,
    )
    return Number(row?.waiting) > 0
  })
  return { moving, goOn: () => other.end() }
}

const restart = (service: TestService, dataFolder: string, databaseUrl: string) =>
  createTestService({ dataFolder, databaseUrl, clock: service.clock })

/** Each database has workers, rates and a version of its own. */
const NOT_MOVED = ['rates', 'format', 'sqlite_sequence']

type Tables = Readonly<Record<string, readonly Row[]>>

/** The rows of every other table, in the order of its first column. */
async function readTables(data: TestData): Promise<Tables> {
  const isSqlite = data.databaseUrl === undefined
  const names = isSqlite
    ? "SELECT name FROM sqlite_schema WHERE type = 'table'"
    : "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'rushes'"
  const tables: Record<string, readonly Row[]> = {}
  for (const { name } of await runSql(data, names)) {
    if (NOT_MOVED.includes(String(name))) continue
    const rows = `SELECT * FROM ${name} ORDER BY 1, 2`
    tables[String(name)] = isSqlite
      ? await runSql(data, rows)
      : (await runSql(data, `SELECT to_jsonb(t) AS row FROM (${rows}) AS t`)).map(({ row }) => row as Row)
  }
  return tables
}

/** The columns of SQLite that have their default, or null, in every row. */
async function unfilledColumns(data: TestData, tables: Tables): Promise<string[]> {
  const unfilled: string[] = []
  for (const [table, rows] of Object.entries(tables))
    for (const { name, dflt_value } of await runSql(data, `PRAGMA table_info(${table})`)) {
      const values = rows.map((row) => row[String(name)])
      if (values.every((value) => value === null || String(value) === dflt_value))
        unfilled.push(`${table}.${name}`)
    }
  return unfilled
}

/** With numbers that a new database would not give, and columns that `createGrown` does not fill. */
const DISTANT_ROWS = [
  "INSERT INTO accounts (id, name, balance, created_at) VALUES (10, 'far', 5, 1)",
  `INSERT INTO keys (id, account_id, name, hash, disabled, created_at)
   VALUES (20, 10, 'far', 'x', 1, 1)`,
  "INSERT INTO users (id, email, account_id, created_at) VALUES (30, 'far@example.com', 10, 1)",
  `INSERT INTO runs (sequence, id, account_id, model, kind, input, price, aspect_ratio, status, turn, crashes, attempt, lease_until, owner, files, created_at,
     idempotency_key, request, job, job_key)
   VALUES (40, 'run_far', 10, 'm', 'image', '{"prompt":"far"}', 0, '16:9', 'succeeded', 3, 2, 4, 5, 'w', 'removed', 1, 'k', 'r',
     '{"handle":{"id":"job_1"}}', 'digest')`,
  "INSERT INTO credits (sequence, account_id, kind, amount, created_at) VALUES (60, 10, 'added', 5, 1)",
  // Numbers that were given, and whose rows were removed.
  'UPDATE sqlite_sequence SET seq = seq + 5',
]

describePostgres('admin migrate', () => {
  let grown: Awaited<ReturnType<typeof grow>>
  beforeAll(async () => {
    grown = await grow()
  })
  const createGrown = () => ({ ...grown, dataFolder: copyOf(grown.dataFolder) })

  it('moves every column of every table, and every sequence', async () => {
    const { dataFolder } = createGrown()
    const sqlite = { dataFolder, databaseUrl: undefined }
    const postgres = { dataFolder, databaseUrl: await temporaryDatabase() }
    await runSql(sqlite, ...DISTANT_ROWS)
    const before = await readTables(sqlite)
    expect(await unfilledColumns(sqlite, before)).toEqual([])
    await move(copyOf(dataFolder), postgres.databaseUrl)

    const { accounts = [], keys = [], runs = [], tokens = [], ...same } = before
    expect(await readTables(postgres)).toEqual({
      ...same,
      accounts: accounts.map((row) => ({ ...row, banned: row.banned === 1 })),
      keys: keys.map((row) => ({ ...row, disabled: row.disabled === 1 })),
      tokens: tokens.map((row) => ({ ...row, from_link: row.from_link === 1 })),
      runs: runs.map((row) => ({
        ...row,
        stopping: row.stopping === 1,
      })),
    })
    const [sequences] = await runSql(
      postgres,
      "SELECT jsonb_object_agg(sequencename, last_value) AS last FROM pg_sequences WHERE schemaname = 'rushes'",
    )
    expect(sequences?.last).toEqual({
      accounts_id_seq: 15,
      keys_id_seq: 25,
      users_id_seq: 35,
      runs_sequence_seq: 45,
      credits_sequence_seq: 65,
      tokens_id_seq: 7,
    })
  })

  it('moves everything, and the service continues with PostgreSQL', async () => {
    const { service, dataFolder, key, theirs, failed, queued, rendering } = createGrown()
    const url = await temporaryDatabase()
    expect(await move(dataFolder, url)).toMatchObject({
      accounts: 3,
      runs: 5,
      problems: [],
      files: undefined,
    })
    const moved = await restart(service, dataFolder, url)
    expect(moved.apiKey).toBe('')
    expect(await ended(moved, queued, { key: service.apiKey })).toMatchObject({ status: 'succeeded' })
    expect(await ended(moved, rendering, { key })).toMatchObject({ status: 'succeeded' })
    expect(await ended(moved, failed, { key: service.apiKey })).toMatchObject({ status: 'failed', error: {} })
    const { output } = await runOf(moved, theirs, { key })
    expect((await ask(moved, 'GET', new URL(output.urls[0]).pathname)).status).toBe(200)
    expect(await created(moved, FOX, { key })).toMatch(/^run_/)
  })

  it.each(['the moved', 'a third', 'the moved, by a link to another'])(
    'gives the files of the moved database to the new one: owned by %s database',
    async (owner) => {
      const grown = createGrown().dataFolder
      const [row] = await runSql(
        { dataFolder: grown, databaseUrl: undefined },
        'SELECT database_id FROM format',
      )
      const dataFolder = copyOf(grown)
      const own = `${row?.database_id}.${statSync(join(dataFolder, 'service.db')).ino}`
      const path = join(dataFolder, 'files/database-id')
      const text = owner === 'a third' ? 'third' : `${own}\n`
      const linked = join(temporaryFolder(), 'linked')
      writeFileSync(linked, text)
      rmSync(path, { force: true })
      if (owner.includes('link')) symlinkSync(linked, path)
      else writeFileSync(path, text)
      await move(dataFolder, await temporaryDatabase())
      expect(existsSync(path) && readFileSync(path, 'utf8')).toBe(owner === 'a third' && 'third')
      expect(readFileSync(linked, 'utf8')).toBe(text)
    },
  )

  it('refuses a target with data, data in use, wrong sums and a folder without data', async () => {
    const { dataFolder } = createGrown()
    const url = await temporaryDatabase()
    await expect(move(temporaryFolder(), url)).rejects.toThrow(/contains no data of a local service/)
    const running = await createTestService({ dataFolder })
    await expect(move(dataFolder, url)).rejects.toThrow(/A service works on this data/)
    await running.clock.runUntil(running.service.close())
    const filled = await temporaryDatabase()
    const other = await openPostgresStore(filled)
    await other.ensureAccount({ name: 'other', credits: 1, nowMs: 1 })
    await other.close()
    await expect(move(copyOf(dataFolder), filled)).rejects.toThrow(/already has the data of a service/)

    const database = openServiceDatabase(join(dataFolder, 'service.db'))
    database.run("UPDATE accounts SET balance = balance + 1 WHERE name = 'studio'")
    database.close()
    await expect(move(copyOf(dataFolder), url)).rejects.toThrow(/The data has problems.*studio/)
  })

  it('blocks changes of the folder during the move, and its use afterwards', async () => {
    const { dataFolder } = createGrown()
    const path = join(dataFolder, 'service.db')
    const url = await temporaryDatabase()
    const { moving, goOn } = await moveHalf(dataFolder, url)
    const late = openServiceDatabase(path, { busyTimeoutMs: 50 })
    expect(() => late.run('UPDATE accounts SET banned = true')).toThrow(/locked/)
    late.close()
    await goOn()
    await moving
    const moved = { code: 'usage', message: expect.stringContaining('was moved to another database') }
    await expect(open(dataFolder)).rejects.toMatchObject(moved)
    await expect(createTestService({ dataFolder })).rejects.toMatchObject(moved)
    await expect(move(dataFolder, url)).rejects.toMatchObject(moved)

    renameSync(`${path}.moved`, path)
    const admin = await open(dataFolder)
    expect(await admin.setBanned('studio', true)).toMatchObject({ banned: true })
    await admin.close()
  })

  it('leaves the folder unchanged when it is interrupted', async () => {
    const { dataFolder } = createGrown()
    const url = await temporaryDatabase()
    const interrupt = new AbortController()
    const { moving, goOn } = await moveHalf(dataFolder, url, interrupt.signal)
    interrupt.abort(new Error('Ctrl-C'))
    await expect(moving).rejects.toThrow('Ctrl-C')
    await goOn()
    const admin = await open(dataFolder)
    await admin.addCredits('studio', 5)
    await admin.close()
    expect((await move(copyOf(dataFolder), url)).credits).toBe(20_004)
  })

  it.skipIf(!hasS3rver)('copies the files to a storage', async () => {
    const { service, dataFolder, theirs, key } = createGrown()
    const store = await startS3Store()
    inEnvironment(store.env)
    const options = { env: store.env, clock: service.clock, warn: (text: string) => expect.fail(text) }
    const storage = await openS3Storage({ url: `s3://${store.bucket}/moved`, ...options })
    onTestFinished(() => storage.close?.())
    const url = await temporaryDatabase()
    const { files } = await migrateData({ dataFolder, databaseUrl: url, storage })
    expect(files).toBe(store.keys().length)
    rmSync(join(dataFolder, 'files'), { recursive: true })
    const moved = await createTestService({
      ...{ dataFolder, databaseUrl: url, clock: service.clock, storage, rendering: false },
    })
    const { output: found } = await runOf(moved, theirs, { key })
    const redirected = await ask(moved, 'GET', new URL(found.urls[0]).pathname)
    expect(redirected.status).toBe(302)
    const signed = await fetch(redirected.header('location') ?? '')
    expect([signed.status, signed.headers.get('content-type')]).toEqual([200, 'image/png'])
  })
})
