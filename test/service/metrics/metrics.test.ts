/** The metrics of the real service: they agree with what was done, and tell nobody's secrets. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { Kind } from '../../../src/protocol/models.js'
import { RendererCrashed } from '../../../src/service/engines/engine.js'
import { createMetrics } from '../../../src/service/metrics/index.js'
import { LOCAL_MODELS } from '../../../src/service/names.js'
import { Refusal, refusalSaying } from '../../../src/service/rules/refusal.js'
import { withBudgetCheck } from '../../../src/service/store/calls.js'
import { openSqliteStore } from '../../../src/service/store/sqlite/index.js'
import { createManualClock } from '../../support/clock.js'
import { createCommandedEngine } from '../../support/engines.js'
import { parseMetrics, sumOf } from '../../support/metrics.js'
import { claimRun, newRun } from '../../support/runs.js'
import {
  addAccount,
  administer,
  ask,
  createTestService,
  ended,
  finished,
  type TestService,
  type TestServiceOptions,
} from '../../support/service.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const RUNS = '/api/v1/runs'
const FOX = { model: LOCAL_MODELS.image, input: { prompt: 'a secret fox' } }
const FILM = { model: LOCAL_MODELS.video, input: { prompt: 'a secret fox', duration: '5' } }

async function createMeasured(options: TestServiceOptions = {}) {
  const clock = createManualClock()
  const metrics = createMetrics(clock)
  const service = await createTestService({ ...options, clock, metrics })
  const count = async (name: string, labels: Readonly<Record<string, string>> = {}) =>
    sumOf(await metrics.text(), name, labels)
  return { ...service, metrics, count }
}

type Measured = Awaited<ReturnType<typeof createMeasured>>

/** A new account with a key of these terms. */
async function addKey(service: TestService, credits: number, terms = {}): Promise<string> {
  const admin = await administer(service)
  await admin.createAccount('acme', credits)
  return (await admin.createKey('acme', terms)).apiKey
}

function openStore() {
  const store = withBudgetCheck(openSqliteStore(join(temporaryFolder(), 'service.db')))
  onTestFinished(() => store.close())
  return store
}

async function queued(service: Measured): Promise<Record<string, number>> {
  const samples = parseMetrics(await service.metrics.text()).get('rushes_queue_length')?.samples ?? []
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.kind, value]))
}

test('counts requests by method, route and status', async () => {
  const service = await createMeasured({ rendering: false })
  const requests = (method: string, route: string, status: number) =>
    service.count('rushes_http_requests_total', { method, route, status: String(status) })
  for (let n = 0; n < 3; n++) expect((await ask(service, 'POST', RUNS, FOX)).status).toBe(201)
  const { body } = await ask(service, 'POST', RUNS, FILM)
  for (let n = 0; n < 5; n++) await ask(service, 'GET', `${RUNS}/${body.id}`)
  await ask(service, 'GET', `${RUNS}/run_none`)
  await ask(service, 'POST', RUNS, '{')
  await ask(service, 'POST', RUNS, FOX, { key: 'wrong' })
  await ask(service, 'GET', '/healthz')
  await ask(service, 'GET', '/no/such/route')
  await ask(service, 'POST', '/healthz', {})
  expect(await requests('POST', RUNS, 201)).toBe(4)
  expect(await requests('GET', `${RUNS}/:id`, 200)).toBe(5)
  expect(await requests('GET', `${RUNS}/:id`, 404)).toBe(1)
  expect(await requests('POST', RUNS, 400)).toBe(1)
  expect(await requests('POST', RUNS, 401)).toBe(1)
  expect(await requests('GET', '/healthz', 200)).toBe(1)
  expect(await requests('GET', 'none', 404)).toBe(1)
  expect(await requests('POST', 'none', 404)).toBe(1)
  expect(await service.count('rushes_http_requests_total')).toBe(15)
  expect(await service.count('rushes_http_request_duration_seconds_count', { route: RUNS })).toBe(6)
  expect(await service.count('rushes_http_request_duration_seconds_count')).toBe(15)
})

test('counts charged and refunded credits, finished runs and renders', async () => {
  const engine = createCommandedEngine()
  const service = await createMeasured({ engine, concurrency: 1 })
  const ids: string[] = []
  for (const body of [FOX, FILM, FOX]) ids.push((await ask(service, 'POST', RUNS, body)).body.id)
  const begun = (jobs: number) =>
    service.clock.runUntil(
      (async () => {
        while (engine.jobs.length < jobs || engine.waiting === 0) await service.clock.sleep(10)
      })(),
    )
  await begun(1)
  expect(await service.count('rushes_credits_charged_total')).toBe(7)
  expect(await queued(service)).toEqual({ image: 1, video: 1 })
  expect(await service.count('rushes_runs_rendering', { kind: 'image' })).toBe(1)
  expect(await service.count('rushes_runs_rendering', { kind: 'video' })).toBe(0)

  await service.clock.advance(4_000)
  engine.finish()
  await begun(2)
  expect(await service.count('rushes_runs_rendering', { kind: 'video' })).toBe(1)
  engine.fail(new Error('no film'))
  for (let crashes = 0; crashes < 3; crashes++) {
    await begun(3 + crashes)
    expect(await service.count('rushes_runs_finished_total', { status: 'failed' })).toBe(1)
    engine.fail(new RendererCrashed('SIGSEGV', ''))
  }
  for (const id of ids) await ended(service, id)
  expect(await service.count('rushes_credits_refunded_total')).toBe(6)
  expect(await service.count('rushes_runs_finished_total', { status: 'succeeded' })).toBe(1)
  expect(await service.count('rushes_runs_finished_total', { status: 'failed' })).toBe(2)
  expect(await queued(service)).toEqual({ image: 0, video: 0 })
  expect(await service.count('rushes_runs_rendering')).toBe(0)

  const renders = (kind: string, outcome: string) =>
    service.count('rushes_render_duration_seconds_count', { kind, outcome })
  expect(await renders('image', 'succeeded')).toBe(1)
  expect(await renders('video', 'failed')).toBe(1)
  expect(await renders('image', 'crashed')).toBe(3)
  expect(await service.count('rushes_render_duration_seconds_count')).toBe(5)
  const seconds = { kind: 'image', outcome: 'succeeded' }
  expect(await service.count('rushes_render_duration_seconds_sum', seconds)).toBeGreaterThanOrEqual(4)
  expect(await service.count('rushes_render_duration_seconds_bucket', { ...seconds, le: '2.5' })).toBe(0)
  expect(await service.count('rushes_render_duration_seconds_bucket', { ...seconds, le: '10' })).toBe(1)
})

test('a run that fails because its process ended is counted by the node that detects it', async () => {
  const metrics = createMetrics(createManualClock())
  const store = metrics.observeStore(openStore())
  const accountId = await store.ensureAccount({ name: 'default', credits: 5, nowMs: 0 })
  await store.addRun(newRun({ id: 'run_x', accountId, price: 5 }))
  await store.renewLease('dead')
  await claimRun(store, 'dead')
  const [dead = { id: '', heartbeatAtMs: 0 }] = await store.listWorkers()
  await store.reapWorker(dead, { crashes: 1, failure: { code: 'c', message: 'm' } }, 9)
  const text = await metrics.text()
  expect(sumOf(text, 'rushes_runs_finished_total', { status: 'failed' })).toBe(1)
  expect(sumOf(text, 'rushes_credits_refunded_total')).toBe(5)
})

test('counts the refusals of each limit', async () => {
  const service = await createMeasured({ rendering: false })
  const refusals = (limit: string) => service.count('rushes_limit_refusals_total', { limit })
  for (const limit of ['rate', 'quota', 'spend_limit', 'balance', 'bodies'])
    expect(await refusals(limit)).toBe(0)
  const key = await addKey(service, 1)
  const create = async (body: object, asking = {}) => (await ask(service, 'POST', RUNS, body, asking)).status
  expect(await create(FOX, { key })).toBe(201)
  expect(await create(FOX, { key })).toBe(402)
  for (let n = 0; n < 22; n++) await ask(service, 'GET', `${RUNS}/run_x`)
  expect(await refusals('rate')).toBe(2)
  expect(await refusals('balance')).toBe(1)
  expect(await service.count('rushes_credits_charged_total')).toBe(1)

  const admin = await administer(service)
  const used = await admin.createKey('acme', { quota: 0 })
  const spent = await admin.createKey('acme', { spendLimit: 0 })
  expect(await create(FOX, { key: used.apiKey })).toBe(429)
  expect(await create(FOX, { key: spent.apiKey })).toBe(403)
  expect(await refusals('quota')).toBe(1)
  expect(await refusals('spend_limit')).toBe(1)
  // Other refusals are not of a limit.
  expect(await create(FOX, { key: 'wrong' })).toBe(401)
  expect(await service.count('rushes_limit_refusals_total')).toBe(5)
})

test('labels never contain an id, a token, a key, a prompt or a URL, for any request', async () => {
  const service = await createMeasured()
  const { body } = await ask(service, 'POST', RUNS, FOX)
  const run = await ended(service, body.id)
  const output = new URL(run.output.urls[0]).pathname
  expect((await ask(service, 'GET', output)).status).toBe(200)
  const secrets = [body.id, output.split('/')[2] ?? '', service.apiKey, 'secret', 'rk_', 'canary']
  const path = fc.webPath().map((text) => `/${text.replace(/^\/+/, '')}/canary`)
  const prefix = fc.constantFrom('', RUNS, '/outputs', `/outputs/${secrets[1]}`, '/healthz', '/api')
  await fc.assert(
    fc.asyncProperty(prefix, path, fc.webQueryParameters(), async (start, end, query) => {
      await ask(service, 'GET', `${start}${end}?key=canary&${query}`)
    }),
    { numRuns: 100 },
  )
  for (const method of ['PUT', 'DELETE', 'PROPFIND', 'M-SEARCH'])
    await service.fetch({ method: method as 'GET', url: new URL('/canary', service.baseUrl), headers: {} })
  const text = await service.metrics.text()
  for (const secret of secrets) expect(text).not.toContain(secret)
  const requests = parseMetrics(text).get('rushes_http_requests_total')?.samples ?? []
  const routes = new Set(requests.map(({ labels }) => labels.route))
  expect([...routes].sort()).toEqual([RUNS, `${RUNS}/:id`, '/outputs/:token/:name', 'none'].sort())
  expect(new Set(requests.map(({ labels }) => labels.method))).toEqual(new Set(['GET', 'POST', 'other']))
  expect(requests.length).toBeLessThan(15)
})

test('every metric has a help text, a conventional name and an entry in the docs', async () => {
  const service = await createMeasured()
  await addAccount(service, 'acme')
  await finished(service, FOX)
  const families = parseMetrics(await service.metrics.text())
  const docs = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
  const own = [...families].filter(([name]) => name.startsWith('rushes_'))
  expect(own.length).toBeGreaterThan(8)
  for (const [name, { type, help, samples }] of own) {
    expect(help, name).toMatch(/^[A-Z].*\.$/)
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    const labels = Object.keys(samples[0]?.labels ?? {}).filter((label) => label !== 'le')
    const cell = labels.map((label) => `\`${label}\``).join(', ')
    expect(docs).toContain(`| \`${name}\` | ${type} | ${cell} |`.replace('|  |', '| |'))
  }
  const alerts = readFileSync(new URL('../../../deploy/prometheus/alerts.yml', import.meta.url), 'utf8')
  const watched = alerts.match(/\b(rushes|nodejs)_\w+/g) ?? []
  expect(watched.length).toBeGreaterThan(5)
  for (const name of [...watched, 'process_resident_memory_bytes', 'process_cpu_seconds_total'])
    expect(families.has(name), name).toBe(true)
})

test('serves the other metrics in time when the length of the queue cannot be read', async () => {
  const clock = createManualClock()
  const metrics = createMetrics(clock)
  const store = openStore()
  const answers: (() => Promise<Readonly<Record<Kind, number>>>)[] = []
  let asked = 0
  metrics.observeStore({
    ...store,
    queueLengths: () => {
      asked += 1
      return answers.shift()?.() ?? store.queueLengths()
    },
  })
  const lengths = async (scrape: Promise<string>) => {
    const text = await clock.runUntil(scrape)
    expect(sumOf(text, 'rushes_runs_finished_total')).toBe(0)
    return parseMetrics(text)
      .get('rushes_queue_length')
      ?.samples.map(({ value }) => value)
  }
  expect(await lengths(metrics.text())).toEqual([0, 0])

  answers.push(() => Promise.reject(new Error('the disk failed')))
  expect(await lengths(metrics.text())).toEqual([])
  expect(await lengths(metrics.text())).toEqual([0, 0])

  // A database that hangs is asked once, however many scrapes wait for it.
  let wake: (lengths: Readonly<Record<Kind, number>>) => void = () => {}
  answers.push(() => new Promise((resolve) => (wake = resolve)))
  const began = clock.monotonic()
  const [one, other] = [metrics.text(), metrics.text()]
  expect(await lengths(one)).toEqual([])
  expect(await lengths(other)).toEqual([])
  expect(clock.monotonic() - began).toBeLessThanOrEqual(1_000)
  expect(asked).toBe(4)
  wake({ image: 9, video: 9 })
  await Promise.resolve()
  expect(await lengths(metrics.text())).toEqual([0, 0])
})

test('an overload by other work is not counted as a refused body', async () => {
  const metrics = createMetrics(createManualClock())
  metrics.countRefusal(refusalSaying('overloaded', 'Too many reads of this account are waiting.'))
  metrics.countRefusal(new Refusal('overloaded', 'A reference image was removed at this moment.'))
  expect(await metrics.text()).toContain('rushes_limit_refusals_total{limit="bodies"} 0')
  metrics.countRefusal(new Refusal('overloaded'))
  expect(await metrics.text()).toContain('rushes_limit_refusals_total{limit="bodies"} 1')
})
