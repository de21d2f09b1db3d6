import { expect, onTestFinished, test } from 'vitest'
import { raceAbort } from '../../src/host/abort.js'
import { RendererCrashed } from '../../src/service/engines/engine.js'
import type { FileStore } from '../../src/service/files/contract.js'
import { createLocalFiles } from '../../src/service/files/local-files.js'
import {
  ask,
  createCommandedEngine,
  created,
  createTestService,
  ended,
  FOX,
  finished,
  ONE_PIXEL_URL,
  runOf,
  temporaryFolder,
  until,
} from '../support/index.js'
import { openStoreOf, runSql } from '../support/test-database.js'

const RUNS = '/api/v1/runs'

test('a restarted service continues with accepted runs, under the same key', async () => {
  const dataFolder = temporaryFolder()
  const before = await createTestService({ dataFolder, engine: createCommandedEngine(), concurrency: 1 })
  const ids = [await created(before), await created(before)]
  await before.clock.advance(1_000)
  expect((await runOf(before, ids[0] ?? '')).status).toBe('processing')
  await before.clock.runUntil(before.service.close())

  const after = await createTestService({ dataFolder, rendering: false })
  expect(after.apiKey).toBe('')
  const known = { ...after, apiKey: before.apiKey }
  for (const id of ids) expect(await runOf(known, id)).toMatchObject({ status: 'queued', started_at: null })
  after.service.startRendering()
  for (const id of ids) expect((await ended(known, id)).status).toBe('succeeded')
})

test('a run whose stored input is corrupt fails and is refunded, and other runs continue', async () => {
  const service = await createTestService({ rendering: false })
  const damaged = await created(service)
  const whole = await created(service)
  await runSql(service, `UPDATE runs SET input = substr(input, 1, 5) WHERE id = '${damaged}'`)
  service.service.startRendering()
  expect(await ended(service, whole)).toMatchObject({ status: 'succeeded' })
  expect(await ended(service, damaged)).toMatchObject({
    status: 'failed',
    input: {},
    error: {
      code: 'render_failed',
      message: 'The stored input of this run is damaged. Its price was refunded.',
    },
  })
  const store = await openStoreOf(service)
  onTestFinished(() => store.close())
  expect((await store.listAccounts()).map(({ balance }) => balance)).toEqual([9_999])
})

test('a process that stands still loses its runs after 15 s, and its late result is ignored', async () => {
  const frozen = createCommandedEngine()
  const one = await createTestService({ engine: frozen, ephemeralKey: true })
  const id = await created(one)
  await one.clock.advance(1_000)
  expect(frozen.waiting).toBe(1)

  // The first process stands still: its clock does not move, while the second one's goes on from there.
  const two = await createTestService({ dataFolder: one.dataFolder, ephemeralKey: true })
  await two.clock.advance(14_000)
  expect((await runOf(two, id)).status).toBe('processing')
  const run = await ended(two, id)
  expect(run.status).toBe('succeeded')

  frozen.finish()
  await one.clock.runUntil(one.clock.sleep(1))
  expect(await runOf(two, id)).toEqual(run)
  expect(one.complaints).toEqual([])
})

test('a run whose renderer dies is tried again, and given up after the third death', async () => {
  let tries = 0
  const render = async () => {
    tries++
    throw new RendererCrashed('the renderer crashed (SIGSEGV)')
  }
  const service = await createTestService({ engine: { render } })
  const id = await created(service)
  expect(await ended(service, id)).toMatchObject({
    status: 'failed',
    error: { code: 'renderer_crashed', message: expect.stringMatching(/crashed three times/) },
  })
  expect(tries).toBe(3)
  expect(service.complaints).toHaveLength(3)
})

test('closing does not wait for a render that cannot be stopped, and requeues its run', async () => {
  const service = await createTestService({ engine: createCommandedEngine({ stuck: true }) })
  const id = await created(service)
  await service.clock.advance(1_000)
  const before = service.clock.now()
  await service.clock.runUntil(service.service.close())
  expect(service.clock.now() - before).toBeLessThanOrEqual(5_000)

  const store = await openStoreOf(service)
  expect(await store.findRun(id, 1)).toMatchObject({ status: 'queued' })
  await store.close()
})

/** A storage that answers no call once it is stalled, except that a put stops when it is aborted. */
function createStallingStorage() {
  const real = createLocalFiles(temporaryFolder())
  const state = { isStalled: false, unanswered: 0 }
  function answer<Result>(call: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    if (!state.isStalled) return call()
    state.unanswered++
    return raceAbort(new Promise<never>(() => {}), signal)
  }
  const files: FileStore = {
    ...real,
    put: (key, source, options) => answer(() => real.put(key, source, options), options?.signal),
    find: (key) => answer(() => real.find(key)),
    remove: (key) => answer(() => real.remove(key)),
  }
  return { storage: { files }, state }
}

test.each([
  ['an output is stored', []],
  ['a reference is read', [ONE_PIXEL_URL]],
])('closing while the storage does not answer and %s counts no crash', async (_, image_urls) => {
  const { storage, state } = createStallingStorage()
  const service = await createTestService({ storage, rendering: false })
  await created(service, { ...FOX, input: { ...FOX.input, image_urls } })
  state.isStalled = true
  service.service.startRendering()
  await until('the stall', () => state.unanswered > 0)
  const before = service.clock.now()
  await service.clock.runUntil(service.service.close())
  expect(service.clock.now() - before).toBeLessThan(4_500)
  expect(await runSql(service, 'SELECT status, CAST(crashes AS integer) AS crashes FROM runs')).toEqual([
    { status: 'queued', crashes: 0 },
  ])
})

test('the service can be closed twice, and accepts no request afterwards', async () => {
  const service = await createTestService()
  await service.clock.runUntil(Promise.all([service.service.close(), service.service.close()]))
  await expect(ask(service, 'GET', `${RUNS}/x`)).rejects.toMatchObject({ sent: false, code: 'ECONNREFUSED' })
})

test('an in-memory key is new at each start and never stored, and a later start shows a key', async () => {
  const dataFolder = temporaryFolder()
  const one = await createTestService({ dataFolder, ephemeralKey: true })
  const { id } = await finished(one)
  await one.clock.runUntil(one.service.close())

  const two = await createTestService({ dataFolder, ephemeralKey: true })
  expect(two.apiKey).not.toBe(one.apiKey)
  expect((await runOf(two, id)).status).toBe('succeeded')
  const old = await ask(two, 'GET', `${RUNS}/${id}`, undefined, { key: one.apiKey })
  expect(old.body.error.code).toBe('invalid_api_key')

  const three = await createTestService({ dataFolder })
  expect(three.apiKey).toMatch(/^rk_[\w-]{43}$/)
  expect((await runOf(three, id)).status).toBe('succeeded')
})
