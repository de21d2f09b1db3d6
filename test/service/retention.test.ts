import {
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeDataFolders } from '../../src/service/data-folders.js'
import { type FileStore, StorageUnavailable } from '../../src/service/files/contract.js'
import { createLocalStorage } from '../../src/service/files/local-files.js'
import { silentLog } from '../../src/service/log.js'
import { LOCAL_MODELS } from '../../src/service/names.js'
import { createRetention, type RetentionOptions } from '../../src/service/retention.js'
import type { FileName } from '../../src/service/store/contract.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import { removeAbandonedFolders } from '../../src/service/worker/worker-lease.js'
import { createManualClock } from '../support/clock.js'
import { createInstantEngine } from '../support/engines.js'
import { claimRun } from '../support/runs.js'
import { createTestService, finished } from '../support/service.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { until } from '../support/until.js'

const RETAIN_MS = 60_000
const HOUR_MS = 3_600_000
const RUN = { keyId: undefined, model: 'm', kind: 'image', input: {}, price: 0, createdAtMs: 0 } as const

/** A store with one worker, `me`, and folders of files. */
async function open() {
  const clock = createManualClock()
  const root = temporaryFolder()
  const folders = { inputs: join(root, 'inputs'), outputs: join(root, 'outputs'), work: join(root, 'work') }
  for (const folder of Object.values(folders)) mkdirSync(folder)
  const store = openSqliteStore(join(root, 'service.db'))
  onTestFinished(() => store.close())
  await store.renewLease('me')
  const accountId = await store.ensureAccount({ name: 'default', credits: 0, nowMs: 0 })
  const storage = createLocalStorage({ ...folders, root }, clock)
  const errors: unknown[] = []
  const foreign: string[] = []
  const onError = (error: unknown) => void errors.push(error)
  const retention = (options: Partial<RetentionOptions> = {}) =>
    createRetention({
      store,
      storage,
      clock,
      retainMs: RETAIN_MS,
      log: silentLog,
      removeWorkFolders: () => removeAbandonedFolders({ work: folders.work, store, clock, onError }),
      onForeign: () => void foreign.push(root),
      onError,
      ...options,
    })
  /** Stores a new image, as a create does it. */
  async function saveImage(sha256: string, key = sha256) {
    await storage.inputs.put(key, { bytes: Buffer.from('x') })
    return { kind: 'input', key, image: { sha256, bytes: 1 } } as const
  }
  const create = (id: string, files: readonly FileName[] = []) =>
    store.addRun({ ...RUN, id, accountId, files, createdAtMs: clock.now() }, () => {})
  /** With a run that took it, and has ended. */
  async function storeImage(sha256: string) {
    const file = await saveImage(sha256)
    await create(`of_${sha256}`, [file])
    await claimRun(store, 'me', { only: [`of_${sha256}`], nowMs: 0 })
    await store.failRun(
      { id: `of_${sha256}`, owner: 'me', nowMs: 0 },
      { code: 'render_failed', message: 'y' },
    )
    return { kind: file.kind, key: file.key }
  }
  /** As a worker does it, up to the end of the run. */
  async function render(id: string) {
    await create(id)
    await claimRun(store, 'me', { only: [id], nowMs: 0 })
    const held = { id, owner: 'me', nowMs: clock.now() }
    const output = { token: id, name: 'a.png', contentType: 'image/png', bytes: 1, sha256: 'abc' }
    await store.addOutputFiles(held, [output])
    await storage.outputs.put(`${id}/a.png`, { bytes: Buffer.from('x') })
    const failure = { code: 'render_failed', message: 'y' }
    return {
      finish: () => store.finishRun(held, [output]),
      fail: () => store.failRun(held, failure),
    }
  }
  // As the start of a service does it.
  await retention({ retainMs: undefined }).sweep()
  const left = () => ({
    inputs: readdirSync(folders.inputs).sort(),
    outputs: readdirSync(folders.outputs).sort(),
  })
  return {
    clock,
    store,
    storage,
    folders,
    retention,
    saveImage,
    storeImage,
    create,
    render,
    left,
    errors,
    foreign,
    root,
    accountId,
  }
}

test('a sweep removes and counts only files older than the limit', async () => {
  const { clock, retention, storeImage, render, left } = await open()
  await storeImage('old')
  await (await render('old')).finish()
  clock.jump(1)
  await storeImage('equal')
  clock.jump(RETAIN_MS)
  await storeImage('young')
  await (await render('young')).finish()
  expect(await retention().sweep()).toEqual({ outputs: 1, images: 1 })
  expect(left()).toEqual({ inputs: ['equal', 'young'], outputs: ['young'] })
})

test('an image that a create takes while it is removed is stored again and kept', async () => {
  const { clock, store, storage, retention, saveImage, storeImage, create, left } = await open()
  await storeImage('a1b2')
  clock.jump(RETAIN_MS + 1)
  let taken: { readonly key: string } | undefined
  const inputs = {
    ...storage.inputs,
    async remove(key: string) {
      // The sweep has decided to remove it, and has not done so yet.
      const file = await saveImage('a1b2', 'second')
      expect(await create('run', [file])).toEqual({ id: 'run' })
      taken = file
      await storage.inputs.remove(key)
    },
  }
  expect(await retention({ storage: { ...storage, inputs } }).sweep()).toEqual({ outputs: 0, images: 1 })
  expect(left().inputs).toEqual([taken?.key])
  expect(await store.findImage('a1b2')).toBe(taken?.key)
  clock.jump(2 * RETAIN_MS)
  expect(await retention().sweep()).toEqual({ outputs: 0, images: 0 })
  expect(left().inputs).toEqual([taken?.key])
})

test('a sweep removes a file without a record after an hour, with and without a retention', async () => {
  const { clock, folders, retention, left } = await open()
  const write = (folder: string, name: string, ageMs: number) => {
    writeFileSync(join(folder, name), 'x')
    const seconds = (clock.now() - ageMs) / 1_000
    utimesSync(join(folder, name), seconds, seconds)
  }
  for (const retainMs of [undefined, RETAIN_MS]) {
    for (const folder of [folders.inputs, folders.outputs]) {
      write(folder, 'old', HOUR_MS + 1_000)
      write(folder, 'young', HOUR_MS - 1_000)
    }
    expect(await retention({ retainMs }).sweep()).toEqual({ outputs: 1, images: 1 })
    expect(left()).toEqual({ inputs: ['young'], outputs: ['young'] })
  }
})

test('a sweep removes nothing from a folder of another database, and reports it', async () => {
  const own = await open()
  const other = await open()
  await own.storeImage('old')
  await (await own.render('old')).finish()
  await own.storage.inputs.put('of_a_create', { bytes: Buffer.from('x') })
  await own.retention({ retainMs: undefined }).sweep()
  own.clock.jump(HOUR_MS + 1)
  const later = () => createManualClock(own.clock.now())
  const foreign = other.retention({ storage: own.storage, clock: later() })
  expect(await foreign.sweep()).toEqual({ outputs: 0, images: 0 })
  expect(await foreign.sweep()).toEqual({ outputs: 0, images: 0 })
  expect(own.left()).toEqual({ inputs: ['of_a_create', 'old'], outputs: ['old'] })
  expect([own.foreign, other.foreign]).toEqual([[], [other.root]])
  expect(await own.retention().sweep()).toEqual({ outputs: 1, images: 2 })
})

test('a sweep takes over an unnamed folder only if the database knows all its files', async () => {
  const { clock, retention, storage, folders, root, left, storeImage, foreign } = await open()
  const name = join(root, 'database-id')
  rmSync(name)
  await storeImage('own')
  mkdirSync(join(folders.outputs, 'photos'))
  const photo = join(folders.outputs, 'photos', 'holiday.jpg')
  writeFileSync(photo, 'x')
  utimesSync(photo, 0, 0)
  clock.jump(24 * HOUR_MS)
  expect(await retention().sweep()).toEqual({ outputs: 0, images: 0 })
  expect([left(), existsSync(name), foreign]).toEqual([
    { inputs: ['own'], outputs: ['photos'] },
    false,
    [root],
  ])
  await storage.outputs.remove('photos/holiday.jpg')
  expect(await retention({ retainMs: undefined }).sweep()).toEqual({ outputs: 0, images: 0 })
  expect(existsSync(name)).toBe(true)
  writeFileSync(name, 'of-another')
  expect(await retention().sweep()).toEqual({ outputs: 0, images: 0 })
  writeFileSync(name, '')
  expect(await retention().sweep()).toEqual({ outputs: 0, images: 1 })
})

test('an unnamed folder with the image of a create in progress is taken over by a later sweep', async () => {
  const { clock, retention, saveImage, create, root, foreign } = await open()
  const name = join(root, 'database-id')
  rmSync(name)
  const image = await saveImage('new')
  await retention({ retainMs: undefined }).sweep()
  expect([existsSync(name), foreign]).toEqual([false, []])
  await create('one', [image])
  clock.jump(2 * HOUR_MS)
  await retention({ retainMs: undefined }).sweep()
  expect([existsSync(name), foreign]).toEqual([true, []])
})

test('a sweep follows no link, and removes only files with a record from behind it', async () => {
  const { clock, retention, folders, root, render, left } = await open()
  const elsewhere = join(root, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'precious'), 'x')
  utimesSync(join(elsewhere, 'precious'), 0, 0)
  rmdirSync(folders.outputs)
  symlinkSync(elsewhere, folders.outputs)
  await (await render('old')).finish()
  clock.jump(24 * HOUR_MS)
  expect(await retention().sweep()).toEqual({ outputs: 1, images: 0 })
  expect(left().outputs).toEqual(['precious'])
})

test('a later sweep removes what an interrupted one has left', async () => {
  const { clock, storage, retention, storeImage, left } = await open()
  await storeImage('one')
  await storeImage('two')
  clock.jump(RETAIN_MS + 1)
  const remove = async () => {
    throw new Error('killed')
  }
  const stopped = retention({ storage: { ...storage, inputs: { ...storage.inputs, remove } } })
  await expect(stopped.sweep()).rejects.toThrow('killed')
  expect(left().inputs).toEqual(['one', 'two'])
  clock.jump(HOUR_MS)
  expect(await retention({ retainMs: undefined }).sweep()).toEqual({ outputs: 0, images: 2 })
  expect(left().inputs).toEqual([])
})

test('a file that cannot be removed blocks no other; an unavailable storage ends the sweep', async () => {
  const { clock, storage, retention, storeImage, left, errors } = await open()
  for (let at = 0; at < 30; at++) await storeImage(`image_${String(at).padStart(2, '0')}`)
  clock.jump(RETAIN_MS + 1)
  let asked = 0
  const withRemove = (refuses: (key: string) => boolean) => ({
    ...storage,
    inputs: {
      ...storage.inputs,
      async remove(key: string) {
        asked++
        if (refuses(key)) throw new StorageUnavailable('away')
        await storage.inputs.remove(key)
      },
    },
  })
  await retention({ storage: withRemove(() => true) }).sweep()
  expect([asked, errors.length]).toEqual([10, 1])
  clock.jump(HOUR_MS)
  const stuck = retention({ storage: withRemove((key) => key === 'image_00') })
  expect(await stuck.sweep()).toEqual({ outputs: 0, images: 29 })
  expect(left().inputs).toEqual(['image_00'])
})

test('many files that cannot be removed do not block others in later sweeps', async () => {
  const { clock, storage, retention, render } = await open()
  for (let at = 0; at < 25; at++) await (await render(`a${String(at).padStart(2, '0')}`)).finish()
  for (const name of ['b', 'c']) await (await render(name)).finish()
  let isStuck = true
  const outputs = {
    ...storage.outputs,
    async remove(key: string) {
      if (isStuck && key.startsWith('a')) throw new StorageUnavailable('unlink: operation not permitted')
      await storage.outputs.remove(key)
    },
  }
  const sweeps = retention({ storage: { ...storage, outputs } })
  const removed = async () => {
    clock.jump(HOUR_MS + 1)
    return (await sweeps.sweep()).outputs
  }
  const rounds = [await removed(), await removed(), await removed()]
  expect(rounds.reduce((sum, each) => sum + each)).toBe(2)
  isStuck = false
  expect([await removed(), await removed()]).toEqual([0, 25])
})

test('an unreadable folder does not stop the rest of a sweep', async () => {
  const { clock, store, storage, retention, storeImage, left, errors } = await open()
  await storeImage('old')
  await storage.inputs.put('unknown', { bytes: Buffer.from('x') })
  clock.jump(HOUR_MS + 1)
  const unreadable = (files: FileStore): FileStore => ({
    ...files,
    async *listOlder(ageMs) {
      yield* files.listOlder(ageMs)
      throw new StorageUnavailable('scandir: permission denied')
    },
  })
  let folderSweeps = 0
  const swept = retention({
    storage: { ...storage, outputs: unreadable(storage.outputs), inputs: unreadable(storage.inputs) },
    removeWorkFolders: async () => void folderSweeps++,
  })
  expect(await swept.sweep()).toEqual({ outputs: 0, images: 2 })
  expect([left().inputs, folderSweeps, errors.length]).toEqual([[], 1, 2])
  expect(await store.findImage('old')).toBeUndefined()
})

test('a sweep stops removing files when the service closes', async () => {
  const { clock, storage, retention, storeImage, left } = await open()
  await storeImage('one')
  await storeImage('two')
  clock.jump(RETAIN_MS + 1)
  const inputs = {
    ...storage.inputs,
    async remove(key: string) {
      void closing.close()
      await storage.inputs.remove(key)
    },
  }
  const closing = retention({ storage: { ...storage, inputs } })
  await closing.sweep()
  expect(left().inputs).toEqual(['two'])
})

test('without a retention no file is removed for its age', async () => {
  const { clock, retention, storeImage, render, left } = await open()
  await storeImage('a1b2')
  await (await render('run')).finish()
  clock.jump(10_000 * 24 * HOUR_MS)
  expect(await retention({ retainMs: undefined }).sweep()).toEqual({ outputs: 0, images: 0 })
  expect(left()).toEqual({ inputs: ['a1b2'], outputs: ['run'] })
})

test('a sweep removes leftovers after an hour, but never files of an unfinished run', async () => {
  const { clock, store, retention, saveImage, render, create, left } = await open()
  await (await render('failed')).fail()
  await render('crashed')
  await store.releaseWorker('me')
  await store.renewLease('me')
  await create('own')
  const rendering = await render('rendering')
  await saveImage('half')
  const all = retention({ retainMs: undefined })
  expect(await all.sweep()).toEqual({ outputs: 0, images: 0 })
  clock.jump(HOUR_MS + 1)
  expect(await all.sweep()).toEqual({ outputs: 1, images: 1 })
  expect(left()).toEqual({ inputs: [], outputs: ['crashed', 'rendering'] })
  expect(await rendering.finish()).toBe(true)
  await claimRun(store, 'me', { only: ['crashed'], models: ['m'] })
  await store.finishRun({ id: 'crashed', owner: 'me', nowMs: clock.now() }, [])
  expect(await all.sweep()).toEqual({ outputs: 1, images: 0 })
  expect(left()).toEqual({ inputs: [], outputs: ['rendering'] })
})

test('leftovers of a failed run are removed by the next start after an hour', async () => {
  const dataFolder = temporaryFolder()
  const clock = createManualClock()
  const local = createLocalStorage(await makeDataFolders(dataFolder), clock)
  const outputs: FileStore = {
    ...local.outputs,
    async put(key, ...rest) {
      if (key.endsWith('second.png')) throw new Error('the second one fails')
      await local.outputs.put(key, ...rest)
    },
    async remove() {
      throw new StorageUnavailable('away')
    },
  }
  const engine = createInstantEngine({ files: ['first.png', 'second.png'] })
  const service = await createTestService({ dataFolder, clock, engine, storage: { ...local, outputs } })
  const order = { model: LOCAL_MODELS.image, input: { prompt: 'a fox' } }
  expect((await finished(service, order)).status).toBe('failed')
  await clock.runUntil(service.service.close())
  const left = () => readdirSync(join(dataFolder, 'outputs'))
  expect(left()).toHaveLength(1)
  clock.jump(2 * HOUR_MS)
  await createTestService({ dataFolder, clock })
  await until('the sweep', () => left().length === 0)
})

test('a sweep removes only old folders of ended workers from the folder of renders', async () => {
  const { clock, store, folders, retention } = await open()
  const work = (worker: string, ageMs: number) => {
    const folder = join(folders.work, worker, 'run_1-x')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'reference'), 'a picture of a user')
    const seconds = (clock.now() - ageMs) / 1_000
    for (const path of [folder, join(folders.work, worker)]) utimesSync(path, seconds, seconds)
  }
  work('killed', HOUR_MS + 1_000)
  work('me', HOUR_MS + 1_000)
  // It may be that of a service with another database.
  work('young', HOUR_MS - 1_000)
  const elsewhere = join(folders.work, '..', 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'precious'), 'x')
  utimesSync(elsewhere, 0, 0)
  symlinkSync(elsewhere, join(folders.work, 'link'))
  await retention({ retainMs: undefined }).sweep()
  expect(readdirSync(folders.work).sort()).toEqual(['link', 'me', 'young'])
  expect(readdirSync(elsewhere)).toEqual(['precious'])
  await store.releaseWorker('me')
  await retention({ retainMs: undefined }).sweep()
  expect(readdirSync(folders.work).sort()).toEqual(['link', 'young'])
  expect(existsSync(join(folders.work, 'young', 'run_1-x', 'reference'))).toBe(true)
})
