/** Runs whose model has paid jobs at a server, in the whole service: across a stop, and with an unknown outcome. */
import { expect, test } from 'vitest'
import {
  administer,
  created,
  createGate,
  createManualClock,
  createTestService,
  ended,
  finished,
  temporaryFolder,
  until,
} from '../support/index.js'
import { modelsFile, openModels } from '../support/model-servers/engine.js'
import { createImagesServer, type ImagesDialect } from '../support/model-servers/images.js'
import { createVideosServer, type VideosOptions } from '../support/model-servers/videos.js'

const RUN = { model: 'acme/wan', input: { prompt: 'a fox', duration: '5' } }

async function open(options: VideosOptions = {}) {
  const server = await createVideosServer(options)
  const clock = createManualClock()
  const dataFolder = temporaryFolder()
  const path = modelsFile({
    ...{ name: 'acme/wan', kind: 'video', engine: { type: 'videos', url: `${server.url}/v1` } },
    ...{ price: { run: 7 }, cost: { run: 0.4, currency: 'USD' } },
  })
  const start = async () =>
    await createTestService({ ...(await openModels({ path }, { clock })), clock, dataFolder })
  const service = await start()
  /** After a stop. */
  const restart = async () => ({ ...(await start()), apiKey: service.apiKey })
  /** A run of which the answer to its create was lost. */
  const createLost = async () => {
    server.fault('POST', 'lose')
    const id = await created(service, RUN)
    expect(await ended(service, id)).toMatchObject({ status: 'failed', error: { code: 'outcome_unknown' } })
    return id
  }
  const admin = await administer(service)
  const balance = async () => (await admin.accounts())[0]?.balance
  return { server, clock, service, restart, createLost, admin, balance }
}

test('a stopped service leaves a job at its server, and follows it after the next start', async () => {
  const { server, clock, service, restart } = await open({ isQuick: false })
  const id = await created(service, RUN)
  await clock.runUntil(until('a poll', () => (server.jobs[0]?.looks ?? 0) > 1))
  await clock.runUntil(service.service.close())
  expect(server.count('DELETE')).toBe(0)
  const [job] = server.jobs
  const next = await restart()
  if (job !== undefined) job.status = 'completed'
  expect((await ended(next, id)).status).toBe('succeeded')
  expect(server.count('POST')).toBe(1)
})

test.each([
  ['is kept within the grace of the stop', undefined, 'succeeded'],
  ['is not waited for any longer', 2_000, 'failed'],
])('the answer to a paid create that arrives 8 s after a stop %s: %s ms', async (_, graceMs, status) => {
  const { server, clock, service, restart } = await open()
  const { after, open: answer } = createGate()
  server.fault('POST', { after })
  const id = await created(service, RUN)
  await until('the create', () => server.count('POST') === 1)
  const notes: string[] = []
  const closing = service.service.close({ graceMs, onGrace: () => notes.push('waits') })
  await clock.advance(8_000)
  answer()
  await clock.runUntil(closing)
  expect((await ended(await restart(), id)).status).toBe(status)
  expect([server.count('POST'), notes]).toEqual([1, ['waits']])
})

test('a paid run whose response is lost is not sent again, stays charged, and can be adopted', async () => {
  const { server, service, createLost, admin, balance } = await open()
  const id = await createLost()
  expect([(await admin.verify()).unknown, await balance()]).toEqual([[id], 9_993])
  await admin.adoptRun(id, 'video_1')
  expect((await ended(service, id)).status).toBe('succeeded')
  const { unknown, problems } = await admin.verify()
  expect([server.count('POST'), unknown, problems, await balance()]).toEqual([1, [], [], 9_993])
  await expect(admin.refundRun(id)).rejects.toThrow('has no unknown outcome')
  await expect(admin.refundRun('run_none')).rejects.toThrow('does not exist')
  const other = await createLost()
  await expect(admin.adoptRun(other, 'video_1')).rejects.toThrow('The job video_1 belongs to another run.')
  expect((await admin.verify()).unknown).toEqual([other])
})

test('adopting a mistyped job id leaves the outcome unknown, says so, and cancels nothing', async () => {
  const { server, service, createLost, admin, balance } = await open()
  const id = await createLost()
  for (const typed of ['video_l', 'video_7']) {
    await admin.adoptRun(id, typed)
    const { status, error } = await ended(service, id)
    expect([status, error.code]).toEqual(['failed', 'outcome_unknown'])
    expect(error.message).toContain(`The model's server does not know the job ${typed}.`)
    expect((await admin.verify()).unknown).toEqual([id])
  }
  expect(await balance()).toBe(9_993)
  await admin.adoptRun(id, 'video_1')
  expect((await ended(service, id)).status).toBe('succeeded')
  expect([server.count('POST'), server.count('DELETE')]).toEqual([1, 0])
})

/** A server that costs money, and draws a picture within one request. */
async function openPictures(dialect: ImagesDialect) {
  const server = await createImagesServer(dialect)
  const path = modelsFile({
    ...{ name: 'acme/still', kind: 'image', engine: { type: 'images', url: `${server.url}/v1` } },
    ...{ input: { seed: false }, cost: { run: 0.4, currency: 'USD' } },
  })
  const clock = createManualClock()
  const dataFolder = temporaryFolder()
  const start = async () =>
    await createTestService({ ...(await openModels({ path }, { clock })), clock, dataFolder })
  return { server, clock, start }
}

const PICTURE = { model: 'acme/still', input: { prompt: 'a fox' } }

test('a paid picture whose server refuses the first form of the request is sent in the other form', async () => {
  const { server, start } = await openPictures('openai')
  expect(await finished(await start(), PICTURE)).toMatchObject({ status: 'succeeded', error: null })
  expect(server.count('POST')).toBe(2)
})

test.each([
  [8_000, 'is the result of its run', 'succeeded'],
  [12_000, 'is not waited for', 'failed'],
])('a paid picture that arrives %i ms after a stop %s', async (ms, _, status) => {
  const { server, clock, start } = await openPictures('sglang')
  const service = await start()
  const { after, open: answer } = createGate()
  server.fault('POST', { after })
  const id = await created(service, PICTURE)
  await clock.runUntil(until('the create', () => server.count('POST') === 1))
  const closing = service.service.close()
  await clock.advance(ms)
  answer()
  await clock.runUntil(closing)
  expect(await ended({ ...(await start()), apiKey: service.apiKey }, id)).toMatchObject({ status })
  expect(server.count('POST')).toBe(1)
})

test('a paid picture whose answer was lost has no job that could be adopted, and can be refunded', async () => {
  const { server, start } = await openPictures('sglang')
  const service = await start()
  server.fault('POST', 'lose')
  const id = await created(service, PICTURE)
  expect(await ended(service, id)).toMatchObject({ status: 'failed', error: { code: 'outcome_unknown' } })
  const admin = await administer(service)
  await expect(admin.adoptRun(id, 'picture_1')).rejects.toThrow('has no jobs')
  expect((await admin.verify()).unknown).toEqual([id])
  await admin.refundRun(id)
})
