import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/host/database.js'
import { copyDatabase } from '../../../src/service/backup.js'
import { openServiceDatabase, openSqliteStore } from '../../../src/service/store/sqlite/index.js'
import { SQLITE_MIGRATIONS } from '../../../src/service/store/sqlite/migrations.js'
import { accountContract } from '../../contract/account-store.js'
import { consoleContract } from '../../contract/console-store.js'
import { creditLedgerContract } from '../../contract/credit-ledger.js'
import { fileRecordsContract } from '../../contract/file-records.js'
import { storeContract } from '../../contract/store.js'
import { userContract } from '../../contract/user-store.js'
import { claimRun } from '../../support/runs.js'
import { temporaryFolder } from '../../support/service.js'

const newPath = () => join(temporaryFolder(), 'service.db')

function writeEmpty(path: string): string {
  writeFileSync(path, '')
  return path
}

storeContract(() => openSqliteStore(newPath()))
fileRecordsContract(() => openSqliteStore(newPath()))
accountContract(() => openSqliteStore(newPath()))
userContract(() => openSqliteStore(newPath()))
consoleContract(() => openSqliteStore(newPath()))

test('a database of a later version is refused and left as it is', async () => {
  const path = newPath()
  const store = openSqliteStore(path)
  await store.close()
  const later = openDatabase({ path, migrations: [...SQLITE_MIGRATIONS, 'CREATE TABLE later (x)'] })
  later.close()
  expect(() => openSqliteStore(path)).toThrow(/newer version of rushes/)
  expect(() => openSqliteStore(path)).toThrow(expect.objectContaining({ code: 'usage', exitCode: 2 }))
})

test('a database that another process has locked is refused with a sentence', async () => {
  const path = newPath()
  const original = newPath()
  await openSqliteStore(original).close()
  // Not in WAL mode, where readers do not wait.
  await copyDatabase(original, writeEmpty(path))
  const other = new Database(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN EXCLUSIVE')
  expect(() => openServiceDatabase(path, { busyTimeoutMs: 50 })).toThrow(
    expect.objectContaining({ code: 'usage', message: `${path} is locked by another process.` }),
  )
  other.exec('ROLLBACK')
  openServiceDatabase(path).close()
})

test('a backup that was put beside the log of the old database is used, and the log is kept aside', async () => {
  const path = newPath()
  const backup = `${path}.backup`
  const old = openSqliteStore(path)
  await old.ensureAccount({ name: 'kept', credits: 5, nowMs: 0 })
  await copyDatabase(path, writeEmpty(backup))
  await old.ensureAccount({ name: 'lost', credits: 5, nowMs: 0 })
  const log = readFileSync(`${path}-wal`)
  await old.close()
  renameSync(backup, path)
  writeFileSync(`${path}-wal`, log)
  const store = openSqliteStore(path)
  expect((await store.listAccounts()).map(({ name }) => name)).toEqual(['kept'])
  expect((await store.verify()).problems).toEqual([])
  await store.close()
  expect(readdirSync(dirname(path)).filter((name) => name.includes('-wal.damaged-'))).toHaveLength(1)
})

test('what was made before there were credits was free, and the first account gets its credits', async () => {
  const path = newPath()
  const before = openDatabase({ path, migrations: SQLITE_MIGRATIONS.slice(0, 1) })
  before.run("INSERT INTO accounts (name, created_at) VALUES ('default', 1), ('other', 2)")
  before.run("INSERT INTO keys (account_id, name, hash, created_at) VALUES (1, 'first', 'h1', 3)")
  for (const status of ['queued', 'succeeded', 'failed'])
    before.run(
      `INSERT INTO runs (id, account_id, key_id, model, kind, input, status, owner, created_at)
       VALUES (?1, 1, 1, 'rushes/preview-image', 'image', '{}', ?1, 'gone', 4)`,
      status,
    )
  before.close()
  const store = openSqliteStore(path)
  expect((await store.listAccounts()).map(({ name, balance }) => [name, balance])).toEqual([
    ['default', 10_000],
    ['other', 0],
  ])
  expect(await store.listKeys()).toMatchObject([{ spent: 0, used: 3, allowedIps: undefined }])
  await store.renewLease('me')
  expect(await claimRun(store, 'me')).toMatchObject({ id: 'queued' })
  expect(await store.failRun({ id: 'queued', owner: 'me', nowMs: 6 }, { code: 'x', message: 'y' })).toEqual({
    runs: 1,
    refunded: 0,
  })
  expect((await store.verify()).problems).toEqual([])
  await store.close()
})

test('a database from before claims: a process with a lease keeps its run, and that of another is queued', async () => {
  const path = newPath()
  const before = openDatabase({ path, migrations: SQLITE_MIGRATIONS.slice(0, 3) })
  before.run("INSERT INTO accounts (name, created_at) VALUES ('acme', 1)")
  before.run("INSERT INTO workers VALUES ('alive', 'host', 1, 1, 1)")
  for (const owner of ['alive', 'gone'])
    before.run(
      `INSERT INTO runs (id, account_id, model, kind, input, status, owner, created_at, started_at)
       VALUES (?1, 1, 'm', 'image', '{}', 'processing', ?1, 4, 5)`,
      owner,
    )
  before.close()
  const store = openSqliteStore(path)
  await store.renewLease('me')
  expect(await claimRun(store, 'me', { nowMs: 6 })).toMatchObject({ id: 'gone' })
  expect(await claimRun(store, 'me', { nowMs: 6 })).toBeUndefined()
  expect(await store.finishRun({ id: 'alive', owner: 'alive', nowMs: 7 }, [])).toBe(true)
  await store.close()
})

test('a database from before the console keeps everything', async () => {
  const path = newPath()
  const before = openDatabase({ path, migrations: SQLITE_MIGRATIONS.slice(0, 4) })
  before.run("INSERT INTO accounts (name, balance, created_at) VALUES ('acme', 95, 1)")
  before.run(
    "INSERT INTO keys (account_id, name, hash, spent, used, created_at) VALUES (1, 'ci', 'h1', 5, 1, 3)",
  )
  before.run(
    `INSERT INTO runs (id, account_id, key_id, model, kind, input, price, status, owner, created_at)
     VALUES ('one', 1, 1, 'm', 'image', ?1, 5, 'queued', '', 4)`,
    JSON.stringify({ prompt: 'a fox \0 x' }),
  )
  before.run("INSERT INTO credits (account_id, kind, amount, created_at) VALUES (1, 'added', 100, 1)")
  before.run(
    "INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at) VALUES (1, 'charge', -5, 'one', 1, 4)",
  )
  before.close()
  const store = openSqliteStore(path)
  expect(await store.listKeys()).toMatchObject([
    { prefix: undefined, usedAtMs: undefined, rotatesUntilMs: undefined, used: 1 },
  ])
  expect(await store.findKey('h1', 0)).toMatchObject({ id: 1 })
  expect(await store.listRuns({ accountId: 1, limit: 9, search: 'FOX' })).toMatchObject({
    runs: [{ id: 'one', key: { id: 1, name: 'ci' }, price: 5 }],
  })
  expect(await store.spendPerDay(1, 0)).toEqual([{ day: '1970-01-01', credits: 5, runs: 1 }])
  expect(await store.listUsers(0)).toEqual([])
  expect((await store.verify()).problems).toEqual([])
  await store.close()
})

test('a database from before the table of files keeps every input, and knows its files', async () => {
  const path = newPath()
  const before = openDatabase({ path, migrations: SQLITE_MIGRATIONS.slice(0, 5) })
  before.run("INSERT INTO accounts (name, balance, created_at) VALUES ('acme', 95, 1)")
  const inputs = [
    {
      prompt: 'a fox '.repeat(1_000),
      aspect_ratio: '16:9',
      image_urls: [image('a'), 'https://x.test/a.png'],
    },
    { prompt: 'half \ud83e \\ud83e of a fox 🦊', image_urls: [image('a'), image('b')] },
    { prompt: 'a \0 fox', image_urls: 'https://x.test/a.png' },
    { prompt: 7 },
  ]
  for (const [n, input] of inputs.entries())
    before.run(
      `INSERT INTO runs (id, account_id, model, kind, input, status, owner, created_at, finished_at)
       VALUES (?1, 1, 'm', 'image', ?2, ?3, 'me', ?4, ?5)`,
      ...[`run_${n}`, JSON.stringify(input), n === 0 ? 'succeeded' : 'queued', n + 1, n === 0 ? 50 : null],
    )
  before.run("INSERT INTO outputs VALUES ('run_0', 0, 't', 'a.png', 'image/png', 3, 'sha')")
  before.close()

  const store = openSqliteStore(path)
  for (const [n, input] of inputs.entries())
    expect((await store.findRun(`run_${n}`, 1))?.input).toEqual(input)
  await store.close()
  const after = openDatabase({ path, migrations: SQLITE_MIGRATIONS })
  onTestFinished(() => after.close())
  const prompts = after.all('SELECT prompt FROM runs ORDER BY sequence').map(({ prompt }) => prompt)
  // SQLite ends a text at NUL.
  expect(prompts.map((prompt) => prompt?.toString().slice(0, 6))).toEqual(['a fox ', 'half \\', 'a ', '7'])
  expect(prompts[0]).toHaveLength(1_000)
  expect(after.all("SELECT aspect_ratio FROM runs WHERE id = 'run_0'")).toEqual([{ aspect_ratio: '16:9' }])
  expect(
    after.all('SELECT kind, key, sha256, bytes, state, run_id, used_at FROM files ORDER BY kind, key'),
  ).toEqual([
    { kind: 'input', key: 'a', sha256: 'a', bytes: 5, state: 'stored', run_id: null, used_at: 2 },
    { kind: 'input', key: 'b', sha256: 'b', bytes: 5, state: 'stored', run_id: null, used_at: 2 },
    {
      kind: 'output',
      key: 't/a.png',
      sha256: 'sha',
      bytes: 3,
      state: 'stored',
      run_id: 'run_0',
      used_at: 50,
    },
  ])
  expect(after.all('SELECT run_id, key FROM run_files ORDER BY run_id, key')).toEqual([
    { run_id: 'run_1', key: 'a' },
    { run_id: 'run_1', key: 'b' },
  ])
})

test('a database from before models: its runs are claimed by model, and a process of the version before goes on', async () => {
  const path = newPath()
  const before = openDatabase({ path, migrations: SQLITE_MIGRATIONS.slice(0, 6) })
  onTestFinished(() => before.close())
  before.run("INSERT INTO accounts (name, created_at) VALUES ('acme', 1)")
  const add = (id: string, model: string) =>
    before.run(
      `INSERT INTO runs (id, account_id, model, kind, input, status, owner, created_at)
       VALUES (?1, 1, ?2, 'image', '{}', 'queued', '', 4)`,
      ...[id, model],
    )
  for (const id of ['one', 'two']) add(id, `acme/${id}`)
  const store = openSqliteStore(path)
  onTestFinished(() => store.close())
  add('three', 'acme/two')
  before.run("INSERT INTO workers (id, host, pid, born_at, heartbeat_at) VALUES ('old', 'host', 1, 1, 1)")
  const oldest =
    "SELECT min(sequence) FROM runs INDEXED BY runs_queue WHERE status = 'queued' AND account_id = 1"
  const moved = `UPDATE runs SET status = 'processing', owner = 'old' WHERE sequence = (${oldest}) RETURNING id`
  expect(before.all(moved)).toEqual([{ id: 'one' }])
  await store.renewLease('me', [{ name: 'acme/two', kind: 'image' }])
  expect(await store.listModels()).toEqual([
    { name: 'acme/one', kind: 'image', workers: 0, queued: 0, processing: 1 },
    { name: 'acme/two', kind: 'image', workers: 1, queued: 2, processing: 0 },
  ])
  expect(await claimRun(store, 'me', { models: ['acme/two'] })).toMatchObject({ id: 'two' })
  expect(await claimRun(store, 'me', { models: ['acme/two'] })).toMatchObject({ id: 'three' })
  expect((await store.verify()).problems).toEqual([])
})

test('a process of the version before archived keys cannot enable one', async () => {
  const path = newPath()
  const before = openDatabase({ path, migrations: SQLITE_MIGRATIONS.slice(0, 7) })
  onTestFinished(() => before.close())
  before.run("INSERT INTO accounts (name, created_at) VALUES ('acme', 1)")
  before.run("INSERT INTO keys (account_id, name, hash, created_at) VALUES (1, 'ci', 'h', 1)")
  const store = openSqliteStore(path)
  onTestFinished(() => store.close())
  expect(await store.listKeys()).toMatchObject([{ name: 'ci', disabled: false, archivedAtMs: undefined }])
  await store.archiveKey(1, 5)
  expect(() => before.run('UPDATE keys SET disabled = 0 WHERE id = 1')).toThrow(/CHECK/)
  expect(await store.findKey('h', 0)).toMatchObject({ disabled: true })
})

const image = (sha256: string) => ({ sha256, bytes: 5, content_type: 'image/png' })

creditLedgerContract(() => {
  const path = newPath()
  const store = openSqliteStore(path)
  const database = openDatabase({ path, migrations: SQLITE_MIGRATIONS })
  onTestFinished(() => database.close())
  onTestFinished(() => store.close())
  return { store, run: async (sql) => void database.run(sql) }
})
