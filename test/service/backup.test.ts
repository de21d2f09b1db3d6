/** The backup of a service that is at work: consistent, complete under its name, or not there. */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { openAdministration } from '../../src/service/admin.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import {
  addAccount,
  ask,
  createTestService,
  FOX,
  finished,
  runOf,
  temporaryFolder,
} from '../support/index.js'
import { newRun } from '../support/runs.js'

const RUNS = '/api/v1/runs'

async function administer(dataFolder: string) {
  const admin = await openAdministration({ dataFolder, clock: { ...systemClock, now: () => 0 }, make: false })
  onTestFinished(() => admin.close())
  return admin
}

test('a backup taken while runs are accepted has every earlier run with its charge', async () => {
  const data = temporaryFolder()
  const store = openSqliteStore(join(data, 'service.db'))
  onTestFinished(() => store.close())
  const accountId = await store.ensureAccount({ name: 'acme', credits: 1_000_000, nowMs: 0 })
  const keyId = await store.addKey({ accountId, hash: 'h', prefix: 'rk_ci', name: 'ci', nowMs: 0 })
  let accepted = 0
  let isOver = false
  const add = async () => {
    while (!isOver) {
      await store.addRun(newRun({ id: `run_${Math.random()}`, accountId, keyId, price: 1 }))
      accepted++
      // The database is in this thread: without a pause, nothing else would run.
      await setImmediate()
    }
  }
  const adding = [add(), add(), add()]
  const admin = await administer(data)
  for (let n = 0; n < 5; n++) {
    const before = accepted
    const path = join(data, `backup-${n}.db`)
    await admin.backup(path)
    const copy = await openSqliteStore(path)
    const { runs, entries, credits, problems } = await copy.verify()
    await copy.close()
    expect(runs).toBeGreaterThanOrEqual(before)
    expect(runs).toBeLessThanOrEqual(accepted + adding.length)
    expect({ entries, credits, problems }).toEqual({
      entries: runs + 1,
      credits: 1_000_000 - runs,
      problems: [],
    })
  }
  isOver = true
  await Promise.all(adding)
})

test('a backup restored into a new folder has the same accounts, keys and runs', async () => {
  const service = await createTestService()
  const key = await addAccount(service, 'acme')
  const { id } = await finished(service, FOX, { key })
  const restored = temporaryFolder()
  await (await administer(service.dataFolder)).backup(join(restored, 'service.db'))
  expect((await ask(service, 'POST', RUNS, FOX, { key })).status).toBe(201)
  const other = await createTestService({ dataFolder: restored, rendering: false })
  expect(other.apiKey).toBe('')
  expect((await runOf(other, id, { key })).status).toBe('succeeded')
  expect(await (await administer(restored)).accounts()).toMatchObject([
    { name: 'default' },
    { name: 'acme', runs: 1 },
  ])
})

test('a backup does not overwrite a file that another process creates meanwhile', async () => {
  const service = await createTestService()
  const path = join(temporaryFolder(), 'b.db')
  const backup = (await administer(service.dataFolder)).backup(path)
  writeFileSync(path, 'another')
  await expect(backup).rejects.toMatchObject({ code: 'usage', message: `${path} already exists.` })
})

test('a running service does not write to a backup that replaced its database, and says so', async () => {
  const service = await createTestService({ rendering: false })
  const path = join(service.dataFolder, 'service.db')
  const backup = `${path}.backup`
  await (await administer(service.dataFolder)).backup(backup)
  expect((await ask(service, 'POST', RUNS, FOX)).status).toBe(201)
  renameSync(path, `${path}.old`)
  renameSync(backup, path)
  for (const [method, at] of [
    ['POST', RUNS],
    ['GET', '/readyz'],
    ['GET', `${RUNS}/run_x`],
  ] as const) {
    const { status, body } = await ask(service, method, at, method === 'POST' ? FOX : undefined)
    expect([status, body.error.code]).toEqual([503, 'not_ready'])
  }
  await service.clock.advance(20_000)
  expect(service.complaints).toEqual([expect.stringContaining('restore a backup')])
  await service.clock.runUntil(service.service.close())
  rmSync(`${path}.old`)
  expect(existsSync(path)).toBe(true)
  expect(await (await administer(service.dataFolder)).accounts()).toMatchObject([{ runs: 0 }])
})
