/** Runs whose model has jobs at a server, in the whole service: across a stop, a crash, and with an unknown outcome. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createNetwork } from '../../src/host/undici.js'
import { openModelSet } from '../../src/service/models/model-set.js'
import { whenOver } from '../support/after-file.js'
import { createManualClock, type ManualClock } from '../support/clock.js'
import { createInstantEngine } from '../support/engines.js'
import { createVideosServer, type VideosOptions } from '../support/model-servers/videos.js'
import { administer, ask, createTestService, ended, type TestService } from '../support/service.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { until } from '../support/until.js'

const RUN = { model: 'acme/wan', input: { prompt: 'a fox', duration: '5' } }

async function open({ cost = true, ...options }: VideosOptions & { readonly cost?: boolean } = {}) {
  const server = await createVideosServer(options)
  const clock = createManualClock()
  const dataFolder = temporaryFolder()
  const path = join(temporaryFolder(), 'models.yaml')
  const costs = cost ? '\ncost: { run: 0.4, currency: USD }' : ''
  const engine = `{ type: videos, url: "${server.url}/v1" }`
  writeFileSync(path, `name: acme/wan\nkind: video\nengine: ${engine}\nprice: { run: 7 }${costs}\n`)
  const start = async () => await startService(clock, dataFolder, path)
  const service = await start()
  const create = async (): Promise<string> => (await ask(service, 'POST', '/api/v1/runs', RUN)).body.id
  return { server, clock, dataFolder, service, start, create }
}

async function startService(clock: ManualClock, dataFolder: string, path: string): Promise<TestService> {
  const set = await openModelSet({ path, env: {} })
  const network = createNetwork({ env: {}, clock })
  const engine = set.createEngine({
    env: {},
    clock,
    fetch: network.fetch,
    urls: [],
    preview: createInstantEngine,
  })
  whenOver(async () => {
    await engine.close?.()
    await network.close()
  })
  return await createTestService({ engine, models: set.models, clock, dataFolder })
}

test('a stopped service leaves a job at its server, and follows it after the next start', async () => {
  const { server, clock, service, start, create } = await open({ isQuick: false })
  const id = await create()
  await clock.runUntil(until('a poll', () => (server.jobs[0]?.looks ?? 0) > 1))
  await clock.runUntil(service.service.close())
  expect(server.count('DELETE')).toBe(0)
  const [job] = server.jobs
  const next = await start()
  if (job !== undefined) job.status = 'completed'
  expect((await ended({ ...next, apiKey: service.apiKey }, id)).status).toBe('succeeded')
  expect(server.count('POST')).toBe(1)
})

test.each([
  ['is kept within the grace of the stop', undefined, 'succeeded'],
  ['is not waited for any longer', 2_000, 'failed'],
])('the answer to a paid create that arrives 8 s after a stop %s: %s ms', async (_, graceMs, status) => {
  const { server, clock, service, start, create } = await open()
  let answer = () => {}
  const after = new Promise<void>((resolve) => {
    answer = resolve
  })
  server.fault('POST', { after })
  const id = await create()
  await until('the create', () => server.count('POST') === 1)
  const notes: string[] = []
  const closing = service.service.close({ graceMs, onGrace: () => notes.push('waits') })
  await clock.advance(8_000)
  answer()
  await clock.runUntil(closing)
  expect((await ended({ ...(await start()), apiKey: service.apiKey }, id)).status).toBe(status)
  expect([server.count('POST'), notes]).toEqual([1, ['waits']])
})

test('a paid run whose response is lost is not sent again, stays charged, and can be adopted', async () => {
  const { server, service, create } = await open()
  server.fault('POST', 'lose')
  const id = await create()
  const run = await ended(service, id)
  expect(run).toMatchObject({ status: 'failed', error: { code: 'outcome_unknown' } })
  const admin = await administer(service)
  const balance = async () => (await admin.accounts())[0]?.balance
  expect([(await admin.verify()).unknown, await balance()]).toEqual([[id], 9_993])
  await admin.adoptRun(id, 'video_1')
  expect((await ended(service, id)).status).toBe('succeeded')
  const { unknown, problems } = await admin.verify()
  expect([server.count('POST'), unknown, problems, await balance()]).toEqual([1, [], [], 9_993])
  await expect(admin.refundRun(id)).rejects.toThrow('has no unknown outcome')
  await expect(admin.refundRun('run_none')).rejects.toThrow('does not exist')
})

test('adopting a mistyped job id leaves the outcome unknown, says so, and cancels nothing', async () => {
  const { server, service, create } = await open()
  server.fault('POST', 'lose')
  const id = await create()
  await ended(service, id)
  const admin = await administer(service)
  for (const typed of ['video_l', 'video_7']) {
    await admin.adoptRun(id, typed)
    const { status, error } = await ended(service, id)
    expect([status, error.code]).toEqual(['failed', 'outcome_unknown'])
    expect(error.message).toContain(`The model's server does not know the job ${typed}.`)
    expect((await admin.verify()).unknown).toEqual([id])
  }
  expect((await admin.accounts())[0]?.balance).toBe(9_993)
  await admin.adoptRun(id, 'video_1')
  expect((await ended(service, id)).status).toBe('succeeded')
  expect([server.count('POST'), server.count('DELETE')]).toEqual([1, 0])
})

test('the job of another run cannot be adopted', async () => {
  const { server, service, create } = await open()
  await ended(service, await create())
  server.fault('POST', 'lose')
  const id = await create()
  expect(await ended(service, id)).toMatchObject({ error: { code: 'outcome_unknown' } })
  const admin = await administer(service)
  await expect(admin.adoptRun(id, 'video_1')).rejects.toThrow('The job video_1 belongs to another run.')
  expect((await admin.verify()).unknown).toEqual([id])
})

test('a run of a free engine fails when the response to its create is lost', async () => {
  const { server, service, create } = await open({ cost: false })
  server.fault('POST', 'lose')
  expect(await ended(service, await create())).toMatchObject({ error: { code: 'render_failed' } })
})
