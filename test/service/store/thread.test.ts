/** What the thread adds. What it passes on: `sqlite.test.ts`, and every test of the service. */
import { copyFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, onTestFinished, test } from 'vitest'
import type { NewRun } from '../../../src/service/store/contract.js'
import { openStoreThread } from '../../../src/service/store/open-store.js'
import { openSqliteStore } from '../../../src/service/store/sqlite/index.js'
import { claimRun, newRun as createNewRun } from '../../support/runs.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const newPath = () => join(temporaryFolder(), 'service.db')

async function openStore(path = newPath()) {
  const store = await openStoreThread(path)
  onTestFinished(() => store.close())
  return store
}

async function openWithKey(credits: number) {
  const path = newPath()
  const store = await openStore(path)
  const accountId = await store.ensureAccount({ name: 'acme', credits, nowMs: 0 })
  const keyId = await store.addKey({ accountId, hash: 'h', prefix: 'rk_ci', name: 'ci', nowMs: 0 })
  const newRun = (id: string): NewRun => createNewRun({ id, accountId, keyId, price: 1 })
  return { path, store, accountId, newRun }
}

test('concurrent creates are charged one by one, and those beyond the balance are refused', async () => {
  const { store, newRun } = await openWithKey(30)
  const ids = Array.from({ length: 50 }, (_, index) => `run_${index}`)
  const results = await Promise.allSettled(ids.map((id) => store.addRun(newRun(id))))
  const refused = results.filter((result) => result.status === 'rejected')
  expect(refused).toHaveLength(20)
  expect(refused[0]?.reason).toMatchObject({ code: 'insufficient_balance', status: 402 })
  expect(await store.listAccounts()).toMatchObject([{ balance: 0, runs: 30 }])
  expect((await store.verify()).problems).toEqual([])
})

test('a create that fails in a shared commit fails alone', async () => {
  const { store, newRun } = await openWithKey(100)
  const results = await Promise.allSettled(['a', 'b', 'a', 'c'].map((id) => store.addRun(newRun(id))))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(await store.listAccounts()).toMatchObject([{ balance: 97, runs: 3 }])
})

test('reads continue and creates wait while another process holds the lock', async () => {
  const { path, store, accountId, newRun } = await openWithKey(100)
  await store.addRun(newRun('first'))
  const other = new Database(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN IMMEDIATE')
  let created = false
  const creating = store.addRun(newRun('second')).then(() => {
    created = true
  })
  // Several reads, so that the thread has tried the create meanwhile.
  for (let count = 0; count < 20; count++)
    expect(await store.findRun('first', accountId)).toMatchObject({ status: 'queued' })
  expect(created).toBe(false)
  other.exec('ROLLBACK')
  await creating
  expect(await store.findRun('second', accountId)).toMatchObject({ status: 'queued' })
})

test('waiting pages do not delay a status request', async () => {
  const { store, newRun, accountId } = await openWithKey(3_000)
  const ids = Array.from({ length: 1_000 }, (_, index) => `run_${index}`)
  await Promise.all(ids.map((id) => store.addRun(newRun(id))))
  let listed = 0
  const pages = Array.from({ length: 40 }, async () => {
    const { runs } = await store.listRuns({ accountId, limit: 100, search: 'none' })
    expect(runs).toEqual([])
    listed++
  })
  expect(await store.findRun('run_1', accountId)).toMatchObject({ status: 'queued' })
  expect(listed).toBeLessThan(40)
  await Promise.all(pages)
  // What was answered is seen by the next page.
  await store.addRun(newRun('latest'))
  const { runs } = await store.listRuns({ accountId, limit: 1 })
  expect(runs).toMatchObject([{ id: 'latest' }])
})

test('large concurrent creates are committed in parts, with reads in between', async () => {
  const { store, newRun, accountId } = await openWithKey(100)
  const input = { prompt: '\u0001'.repeat(100_000), more: 'x'.repeat(200_000) }
  let created = 0
  const creates = Array.from({ length: 60 }, async (_, index) => {
    await store.addRun({ ...newRun(`run_${index}`), input })
    created++
  })
  await creates[0]
  expect(await store.findRun('run_0', accountId)).toMatchObject({ status: 'queued' })
  expect(created).toBeLessThan(60)
  await Promise.all(creates)
  await store.renewLease('me')
  for (let n = 0; n < 3; n++) {
    const { id = '' } = (await claimRun(store, 'me')) ?? {}
    expect(await store.findRun(id, accountId)).toMatchObject({ status: 'processing' })
  }
  expect(await store.listAccounts()).toMatchObject([{ balance: 40, runs: 60 }])
})

test('a closed store has all data in the database file itself', async () => {
  const { path, store, newRun, accountId } = await openWithKey(100)
  await store.addRun(newRun('kept'))
  expect((await store.listRuns({ accountId, limit: 1 })).runs).toMatchObject([{ id: 'kept' }])
  await store.close()
  const copy = newPath()
  copyFileSync(path, copy)
  const again = openSqliteStore(copy)
  onTestFinished(() => again.close())
  expect(await again.findRun('kept', accountId)).toMatchObject({ id: 'kept' })
  await expect(store.findRun('kept', accountId)).rejects.toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining('has ended'),
  })
})

test('a database file that was removed or replaced accepts no changes', async () => {
  const { path, store, newRun } = await openWithKey(100)
  await store.addRun(newRun('kept'))
  renameSync(path, `${path}.away`)
  const refused = { code: 'SQLITE_READONLY_DBMOVED' }
  await expect(store.addRun(newRun('lost'))).rejects.toMatchObject(refused)
  writeFileSync(path, 'another file')
  await expect(store.addRun(newRun('lost'))).rejects.toMatchObject(refused)
  await expect(store.findRun('run_x', 1)).rejects.toMatchObject(refused)
  await expect(store.findKey('another')).rejects.toMatchObject(refused)
  expect(await store.findRun('kept', 1)).toMatchObject({ status: 'queued' })
})

test.each([
  ['an empty file', '', /is empty/],
  ['a log without its database', '-wal', /is missing, and its log is there/],
])('refuses %s in place of the database', async (_name, ending, says) => {
  const path = newPath()
  writeFileSync(path + ending, ending === '' ? '' : 'a log')
  await expect(openStoreThread(path)).rejects.toMatchObject({
    code: 'usage',
    message: expect.stringMatching(says),
  })
})

test('a closing service stops waiting for a lock, while other services continue', async () => {
  const { path, store, newRun, accountId } = await openWithKey(100)
  const open = await openStoreThread(path)
  onTestFinished(() => open.close())
  const other = new Database(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN IMMEDIATE')
  let isWaiting = true
  const waiting = open.addRun(newRun('patient')).finally(() => {
    isWaiting = false
  })
  waiting.catch(() => {})
  const creating = store.addRun(newRun('late'))
  store.stopWaiting()
  await expect(creating).rejects.toMatchObject({ code: 'SQLITE_BUSY' })
  expect(isWaiting).toBe(true)
  // Reads, and changes once the lock is free, are as before.
  expect(await store.findRun('late', accountId)).toBeUndefined()
  other.exec('ROLLBACK')
  await waiting
  await store.addRun(newRun('later'))
})

test('an account can be added in a shared commit', async () => {
  const { store, newRun } = await openWithKey(30)
  const [, added] = await Promise.all([
    store.addRun(newRun('run_1')),
    store.addAccount({ name: 'second', credits: 5, nowMs: 0 }),
  ])
  expect(added).toMatchObject({ name: 'second', balance: 5 })
})
