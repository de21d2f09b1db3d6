/** `--retain`, and whose files it removes. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FolderReplaced } from '../../src/host/own-folder.js'
import { copyDatabase } from '../../src/service/admin.js'
import { StorageUnavailable } from '../../src/service/files/contract.js'
import { createLocalStorage } from '../../src/service/files/local-files.js'
import { newWorkerId } from '../../src/service/rules/secrets.js'
import type { Store } from '../../src/service/store/index.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import { Retention, type RetentionOptions } from '../../src/service/worker/retention.js'
import {
  ask,
  createManualClock,
  createTestService,
  FOX,
  finished,
  ONE_PIXEL_URL,
  runOf,
  temporaryFolder,
} from '../support/index.js'
import { readyDatabase } from '../support/ready-database.js'
import { claimRun, held, newRun } from '../support/runs.js'

const RETAIN_MS = 60_000

async function open() {
  const clock = createManualClock()
  const root = temporaryFolder()
  const folder = join(root, 'files')
  mkdirSync(folder)
  const openStore = (path: string): Store => {
    const opened = openSqliteStore(readyDatabase('service', path), clock)
    onTestFinished(() => opened.close())
    return opened
  }
  const path = join(root, 'service.db')
  const store = openStore(path)
  const accountId = await store.ensureAccount({ name: 'default', credits: 0, nowMs: 0 })
  const storage = createLocalStorage(folder)
  const foreign: string[] = []
  const retentionOf = (options: Partial<RetentionOptions> = {}) =>
    new Retention({
      ...{ store, storage, clock, retainMs: RETAIN_MS },
      work: join(root, 'work'),
      onForeign: () => void foreign.push(root),
      onError: (error) => expect.fail(String(error)),
      ...options,
    })
  const sweep = (options?: Partial<RetentionOptions>) => retentionOf(options).sweep()
  /** A run with an input and an output. */
  async function begin(id: string) {
    await store.addRun(newRun({ id, accountId, createdAtMs: clock.now() }))
    await storage.files.put(`${id}/inputs/a1`, { bytes: Buffer.from('x') })
    await storage.files.put(`${id}/secret/a.png`, { bytes: Buffer.from('x') })
    await claimRun(store, 'me', { only: [id] })
  }
  /** One that ends now. */
  async function end(id: string) {
    await begin(id)
    await store.finishRun(held(id, 'me', clock.now()), [])
  }
  const left = () => readdirSync(folder).filter((name) => name !== 'database-id')
  // As the start of a service does it.
  await sweep({ retainMs: undefined })
  return { clock, store, storage, retentionOf, sweep, begin, end, left, foreign, folder, path, openStore }
}

test('removes all files of runs that ended before, and no others', async () => {
  const { clock, store, sweep, begin, end, left } = await open()
  await end('old')
  await begin('stopping')
  await store.cancelRun('stopping', clock.now())
  clock.jump(RETAIN_MS + 1)
  await end('young')
  await store.addRun(newRun({ id: 'queued' }))
  expect([await sweep({ retainMs: undefined }), left().length]).toEqual([0, 3])
  expect([await sweep(), left()]).toEqual([1, ['stopping', 'young']])
  expect(await sweep()).toBe(0)
})

test('the database says so first, and a sweep that could not remove files removes them later', async () => {
  const { clock, storage, sweep, end, left } = await open()
  await end('old')
  clock.jump(RETAIN_MS + 1)
  const removeBelow = () => Promise.reject(new StorageUnavailable('away'))
  const away = { ...storage, files: { ...storage.files, removeBelow } }
  await expect(sweep({ storage: away })).rejects.toThrow('away')
  expect([await sweep(), left()]).toEqual([1, []])
})

test('a restored copy of the database removes nothing from the files of the original', async () => {
  const { clock, store, sweep, end, left, foreign, folder, path, openStore } = await open()
  await end('old')
  clock.jump(RETAIN_MS + 1)
  const copy = `${path}.copy`
  writeFileSync(copy, '')
  copyDatabase(path, copy)
  const plain = `${path}.plain`
  await store.close()
  writeFileSync(plain, readFileSync(path))
  for (const each of [copy, plain]) {
    const restored = openStore(each)
    expect([await sweep({ store: restored }), left()]).toEqual([0, ['old']])
    // Its operator says that the files are its own.
    if (each === plain) writeFileSync(join(folder, 'database-id'), '')
    else expect(await sweep({ store: restored })).toBe(0)
  }
  expect(foreign).toHaveLength(3)
  expect([await sweep({ store: openStore(plain) }), left()]).toEqual([1, []])
})

test('the URL of a removed output responds with 410, and its run stays', async () => {
  const service = await createTestService({ retainMs: RETAIN_MS })
  const image_urls = [ONE_PIXEL_URL]
  const run = await finished(service, { ...FOX, input: { ...FOX.input, image_urls } })
  const { pathname } = new URL(run.output.urls[0])
  expect((await ask(service, 'GET', pathname)).status).toBe(200)
  expect(readdirSync(join(service.dataFolder, 'files', run.id))).toHaveLength(2)
  await service.clock.advance(3 * RETAIN_MS)
  expect((await ask(service, 'GET', pathname)).status).toBe(410)
  expect(existsSync(join(service.dataFolder, 'files', run.id))).toBe(false)
  expect((await runOf(service, run.id)).status).toBe('succeeded')
})

test('runs whose folders cannot be removed keep no others from being removed, and are tried again', async () => {
  const { clock, storage, sweep, end, left, folder } = await open()
  // More than one call of the store returns, all at one moment.
  const odd = Array.from({ length: 120 }, (_, at) => `odd${at}`)
  for (const id of [...odd, 'old']) await end(id)
  clock.jump(RETAIN_MS + 1)
  const errors: unknown[] = []
  const removeBelow = async (id: string) => {
    if (id.startsWith('odd')) throw new FolderReplaced(join(folder, id), 'a file')
    await storage.files.removeBelow(id)
  }
  const partly = { ...storage, files: { ...storage.files, removeBelow } }
  expect(await sweep({ storage: partly, onError: (error) => errors.push(error) })).toBe(1)
  expect([left().sort(), errors.length]).toEqual([odd.sort(), odd.length])
  expect([await sweep(), left()]).toEqual([odd.length, []])
})

test('a sweep that is closed marks no further runs', async () => {
  const { clock, store, retentionOf, sweep, end, left } = await open()
  // More than one call of the store returns.
  for (let at = 0; at < 101; at++) await end(`old${at}`)
  clock.jump(RETAIN_MS + 1)
  let marked = 0
  const expireFiles: Store['expireFiles'] = async (...words) => {
    const runs = await store.expireFiles(...words)
    marked += runs.length
    void retention.close()
    return runs
  }
  const retention = retentionOf({ store: { ...store, expireFiles } })
  expect([await retention.sweep(), marked, left().length]).toEqual([100, 100, 1])
  expect([await sweep(), left()]).toEqual([1, []])
})

test('only the work folders of workers without runs are removed, after an hour', async () => {
  const { clock, store, sweep } = await open()
  const work = temporaryFolder()
  const [mine, gone, fresh] = [newWorkerId(), newWorkerId(), newWorkerId()]
  const names = [mine, gone, fresh, 'photos', `${gone}0`, `x${gone}`]
  await store.addRun(newRun({ id: 'mine' }))
  await claimRun(store, mine)
  const hourAgo = new Date(clock.now() - 3_600_001)
  const make = (folder: string) => {
    for (const name of names) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'a.jpg'), 'a')
      const changed = name === fresh ? new Date(clock.now()) : hourAgo
      for (const path of [join(folder, name, 'a.jpg'), join(folder, name)]) utimesSync(path, changed, changed)
    }
  }
  make(work)
  await sweep({ work })
  expect(readdirSync(work).sort()).toEqual(names.filter((name) => name !== gone).sort())
  expect(readFileSync(join(work, 'photos', 'a.jpg'), 'utf8')).toBe('a')
  // A link in place of the folder of all workers.
  const elsewhere = temporaryFolder()
  make(elsewhere)
  symlinkSync(elsewhere, join(work, 'link'))
  await sweep({ work: join(work, 'link') })
  expect(readdirSync(elsewhere)).toHaveLength(names.length)
})
