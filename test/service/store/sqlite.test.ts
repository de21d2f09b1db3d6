import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/host/database.js'
import { copyDatabase } from '../../../src/service/admin.js'
import { FORMAT } from '../../../src/service/store/schema.js'
import {
  openServiceDatabase,
  openSqliteStore,
  SQLITE_SCRIPTS,
} from '../../../src/service/store/sqlite/index.js'
import { databaseContract } from '../../contract/databases.js'
import { temporaryFolder } from '../../support/index.js'
import { readyDatabase } from '../../support/ready-database.js'
import { claimRun } from '../../support/runs.js'
import { OLD_ROWS } from './old-rows.js'

const newPath = () => join(temporaryFolder(), 'service.db')

function writeEmpty(path: string): string {
  writeFileSync(path, '')
  return path
}

databaseContract(() => {
  const path = readyDatabase('service', newPath())
  const store = openSqliteStore(path)
  onTestFinished(() => store.close())
  const run = async (sql: string) => {
    const database = openDatabase({ path, migrations: SQLITE_SCRIPTS })
    try {
      database.run(sql)
    } finally {
      database.close()
    }
  }
  return { store, run }
})

test('a database of another format is refused', async () => {
  const path = newPath()
  const store = openSqliteStore(path)
  await store.close()
  const later = openDatabase({ path, migrations: [...SQLITE_SCRIPTS, 'CREATE TABLE later (x)'] })
  later.close()
  expect(() => openSqliteStore(path)).toThrow(`another version of rushes: it has format ${FORMAT + 1}`)
  expect(() => openSqliteStore(path)).toThrow(expect.objectContaining({ code: 'usage', exitCode: 2 }))
})

test('a database of an earlier format is brought up to date', async () => {
  const path = newPath()
  const old = openDatabase({ path, migrations: SQLITE_SCRIPTS.slice(0, 1) })
  for (const row of OLD_ROWS) old.run(row)
  old.close()
  const store = openSqliteStore(path)
  expect(await store.listKeys()).toMatchObject([{ id: 1, name: 'old', disabled: true }])
  expect(await store.listUsers()).toMatchObject([{ email: 'ann@example.com', account: 'acme' }])
  // It has the model of its name.
  expect(await claimRun(store, 'me')).toMatchObject({ id: 'run_old', document: undefined })
  await store.close()
})

test('a database that another process has locked is refused with that reason', async () => {
  const path = newPath()
  const original = newPath()
  await openSqliteStore(original).close()
  // Not in WAL mode, where readers do not wait.
  copyDatabase(original, writeEmpty(path))
  const other = new Database(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN EXCLUSIVE')
  expect(() => openServiceDatabase(path, { busyTimeoutMs: 50 })).toThrow(
    expect.objectContaining({ code: 'usage', message: `${path} is locked by another process.` }),
  )
  other.exec('ROLLBACK')
  openServiceDatabase(path).close()
})

test('a restored backup is used, and the log of the old database is kept aside', async () => {
  const path = newPath()
  const backup = `${path}.backup`
  const old = openSqliteStore(path)
  await old.ensureAccount({ name: 'kept', credits: 5, nowMs: 0 })
  copyDatabase(path, writeEmpty(backup))
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
