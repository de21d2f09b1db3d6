/** Canceling runs through the API: the answer, the refund, the engine, and other nodes. */
import { expect, test } from 'vitest'
import { RunCanceled } from '../../src/service/engines/engine.js'
import { PREVIEW_MODELS } from '../../src/service/models/served-model.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  administer,
  ask,
  createCommandedEngine,
  created,
  createTestService,
  ended,
  FOX,
  runOf,
  type TestService,
  type TestServiceOptions,
  until,
} from '../support/index.js'

const RUNS = '/api/v1/runs'
const PAID_MODELS = PREVIEW_MODELS.map((model) => ({ ...model, mayCost: true }))

const cancel = (service: TestService, id: string, key?: string) =>
  ask(service, 'POST', `${RUNS}/${id}/cancel`, undefined, { key })

async function createService(options: TestServiceOptions = {}) {
  const engine = createCommandedEngine()
  const service = await createTestService({ engine, ...options })
  const admin = await administer(service)
  const balance = async () => (await admin.accounts()).find(({ name }) => name === 'default')?.balance
  const before = await balance()
  /** What the account has paid, as the ledger has it. */
  const paid = async () => {
    expect((await admin.verify()).problems).toEqual([])
    return Number(before) - Number(await balance())
  }
  /** Runs the clock until the refund of the run is decided. */
  const settled = async (id: string) => {
    for (let seconds = 0; seconds < 160; seconds++) {
      const run = await runOf(service, id)
      if (run.status === 'canceled') return run
      await service.clock.advance(1_000)
    }
    throw new Error(`${id} was not settled`)
  }
  return { engine, service, admin, paid, settled }
}

test('a canceled queued run is refunded and never starts, and a repeat gets the same response', async () => {
  const { engine, service, paid } = await createService({ rendering: false })
  const id = await created(service)
  expect(await paid()).toBe(1)
  const { status, body, header } = await cancel(service, id)
  expect([status, header('cache-control')]).toEqual([200, 'no-store'])
  expect(body).toMatchObject({
    ...{ id, ...FOX, status: 'canceled', output: null, started_at: null, finished_at: body.created_at },
    error: { code: 'canceled', message: 'The run was canceled. Its price was refunded.' },
  })
  expect((await cancel(service, id)).body).toEqual(body)
  expect(await runOf(service, id)).toEqual(body)
  expect(await paid()).toBe(0)
  service.service.startRendering()
  await service.clock.advance(3_000)
  expect(engine.jobs).toEqual([])
})

test('canceling a run in processing aborts its engine, and refunds it if the engine costs nothing', async () => {
  const { engine, service, paid, settled } = await createService({ concurrency: 1 })
  const id = await created(service)
  const next = await created(service)
  await until('the engine started', () => engine.waiting === 1)
  expect((await cancel(service, id)).body).toMatchObject({
    ...{ status: 'processing', finished_at: null },
    error: { code: 'canceling' },
  })
  const run = await settled(id)
  expect(run).toMatchObject({
    status: 'canceled',
    error: { message: expect.stringContaining('was refunded') },
  })
  expect(engine.jobs[0]?.signal.reason).toBeInstanceOf(RunCanceled)
  expect(await paid()).toBe(1)
  // Its slot is free.
  await service.clock.advance(1_000)
  await until('the engine started', () => engine.jobs.length === 2)
  engine.finish()
  expect(await ended(service, next)).toMatchObject({ status: 'succeeded' })
  expect(service.complaints).toEqual([])
})

test.each([
  ['has no jobs to cancel', undefined, 1, 'not refunded'],
  ['was not charged for it', async () => 'not charged' as const, 0, 'was refunded'],
  ['was charged for it', async () => 'charged' as const, 1, 'not refunded'],
  ['does not know', async () => 'unknown' as const, 1, 'not refunded'],
  ['fails', () => Promise.reject(new Error('no answer')), 1, 'not refunded'],
  ['does not answer', () => new Promise<never>(() => {}), 1, 'not refunded'],
])(
  'a canceled run of a paid provider is refunded only if certainly not charged: the engine %s',
  async (_what, answer, credits, text) => {
    const canceled: unknown[] = []
    const rendering = createCommandedEngine()
    const engine = {
      ...rendering,
      ...(answer && {
        cancel(run: unknown) {
          canceled.push(run)
          return answer()
        },
      }),
    }
    const { service, admin, paid, settled } = await createService({ engine, models: PAID_MODELS })
    const id = await created(service)
    await until('the engine started', () => rendering.waiting === 1)
    await cancel(service, id)
    expect((await settled(id)).error.message).toContain(text)
    expect(await paid()).toBe(credits)
    for (const run of canceled) expect(run).toMatchObject({ id, model: LOCAL_MODELS.image })
    const isConfirmed = !['fails', 'does not answer'].includes(_what)
    expect(canceled.length > 1).toBe(!isConfirmed)
    expect((await admin.verify()).unknown).toEqual(isConfirmed ? [] : [id])
  },
)

test('a cancel that comes after the job has succeeded keeps the result that was paid for', async () => {
  const rendering = createCommandedEngine()
  const engine = { ...rendering, cancel: async () => 'succeeded' as const }
  const { service, paid } = await createService({ engine, models: PAID_MODELS })
  const id = await created(service)
  await until('the engine started', () => rendering.waiting === 1)
  expect((await cancel(service, id)).body).toMatchObject({
    status: 'processing',
    error: { code: 'canceling' },
  })
  // The worker asks for work twice a second.
  await until('the run is followed again', async () => {
    await service.clock.advance(500)
    return rendering.jobs.length === 2
  })
  rendering.finish()
  expect(await ended(service, id)).toMatchObject({ status: 'succeeded', error: null })
  expect(await paid()).toBe(1)
})

test('another node on the same data cancels a run within 2.5 s', async () => {
  const { engine, service, settled } = await createService()
  const { clock, dataFolder, databaseUrl, apiKey } = service
  const other = await createTestService({ clock, dataFolder, databaseUrl, role: 'api', rendering: false })
  const id = await created(service)
  await until('the engine started', () => engine.waiting === 1)
  const sentAtMs = clock.now()
  expect((await cancel({ ...other, apiKey }, id)).body).toMatchObject({ error: { code: 'canceling' } })
  await settled(id)
  expect(engine.jobs[0]?.signal.reason).toBeInstanceOf(RunCanceled)
  expect(clock.now() - sentAtMs).toBeLessThanOrEqual(2_500)
})

test('a cancel of a foreign or unknown run is 404, and counts against the rate limit', async () => {
  const { service, admin } = await createService({ rendering: false })
  const id = await created(service)
  await admin.createAccount('acme', 5)
  const { apiKey } = await admin.createKey('acme', {})
  expect(await cancel(service, id, apiKey)).toMatchObject({
    status: 404,
    body: { error: { code: 'run_not_found' } },
  })
  expect((await runOf(service, id)).status).toBe('queued')
  for (let n = 1; n < 20; n++) expect((await cancel(service, 'run_none', apiKey)).status).toBe(404)
  expect(await cancel(service, id, apiKey)).toMatchObject({
    status: 429,
    body: { error: { code: 'RATE_LIMITED' } },
  })
})

test('an operator can cancel a run, and name no other', async () => {
  const { service, admin, paid } = await createService({ rendering: false })
  const id = await created(service)
  expect(await admin.cancelRun(id)).toMatchObject({ id, status: 'canceled' })
  expect(await paid()).toBe(0)
  await expect(admin.cancelRun('run_none')).rejects.toMatchObject({ code: 'usage', exitCode: 2 })
  await expect(admin.cancelRun(id)).resolves.toMatchObject({ status: 'canceled' })
})
