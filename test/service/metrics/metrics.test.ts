/** The metrics of the real service: they agree with what was done, and tell nobody's secrets. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { createMetrics } from '../../../src/service/http/metrics.js'
import { LOCAL_MODELS } from '../../../src/service/rules/names.js'
import { anyCharacter } from '../../support/any-character.js'
import {
  addAccount,
  ask,
  createCommandedEngine,
  createManualClock,
  createTestService,
  ended,
  finished,
  type TestServiceOptions,
  until,
} from '../../support/index.js'

const RUNS = '/api/v1/runs'
const FOX = { model: LOCAL_MODELS.image, input: { prompt: 'a secret fox' } }
const FILM = { model: LOCAL_MODELS.video, input: { prompt: 'a secret fox', duration: '5' } }

/** The samples of a metric in Prometheus text format, as prom-client writes it. */
const samplesOf = (text: string, metric: string) =>
  [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].flatMap(([, name, labels = '', value]) =>
    name === metric ? [{ labels: labelsOf(labels), value: Number(value) }] : [],
  )

const labelsOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]))

async function createMeasured(options: TestServiceOptions = {}) {
  const clock = createManualClock()
  const metrics = createMetrics(clock)
  const service = await createTestService({ ...options, clock, metrics })
  const count = async (name: string, labels: Readonly<Record<string, string>> = {}) =>
    samplesOf(await metrics.text(), name)
      .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
      .reduce((sum, { value }) => sum + value, 0)
  return { ...service, metrics, count }
}

const FREE = { host: '127.0.0.1', port: 0 }

type Measured = Awaited<ReturnType<typeof createMeasured>>

async function queued(service: Measured): Promise<Record<string, number>> {
  const samples = samplesOf(await service.metrics.text(), 'rushes_queue_length')
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.kind, value]))
}

test('counts requests by route and status', async () => {
  const service = await createMeasured({ rendering: false })
  const requests = (route: string, status: number) =>
    service.count('rushes_http_requests_total', { route, status: String(status) })
  for (let n = 0; n < 3; n++) expect((await ask(service, 'POST', RUNS, FOX)).status).toBe(201)
  const { body } = await ask(service, 'POST', RUNS, FILM)
  for (let n = 0; n < 5; n++) await ask(service, 'GET', `${RUNS}/${body.id}`)
  await ask(service, 'GET', `${RUNS}/run_none`)
  await ask(service, 'POST', RUNS, '{')
  await ask(service, 'POST', RUNS, FOX, { key: 'wrong' })
  await ask(service, 'GET', '/healthz')
  await ask(service, 'GET', '/no/such/route')
  await ask(service, 'POST', '/healthz', {})
  expect(await requests(RUNS, 201)).toBe(4)
  expect(await requests(`${RUNS}/:id`, 200)).toBe(5)
  expect(await requests(`${RUNS}/:id`, 404)).toBe(1)
  expect(await requests(RUNS, 400)).toBe(1)
  expect(await requests(RUNS, 401)).toBe(1)
  expect(await requests('/healthz', 200)).toBe(1)
  expect(await requests('none', 404)).toBe(2)
  expect(await service.count('rushes_http_requests_total')).toBe(15)
})

test('counts charged credits, the queue and renders', async () => {
  const engine = createCommandedEngine()
  const service = await createMeasured({ engine, concurrency: 1 })
  for (const body of [FOX, FILM]) await ask(service, 'POST', RUNS, body)
  await service.clock.runUntil(until('the first render', () => engine.waiting === 1))
  expect(await service.count('rushes_credits_charged_total')).toBe(6)
  expect(await queued(service)).toEqual({ image: 0, video: 1 })
  await service.clock.advance(4_000)
  engine.finish()
  await service.clock.runUntil(until('the second render', () => engine.jobs.length === 2))
  engine.fail(new Error('no film'))
  const renders = (kind: string, outcome: string) =>
    service.count('rushes_render_duration_seconds_count', { kind, outcome })
  await service.clock.runUntil(until('its end', async () => (await renders('video', 'failed')) === 1))
  expect(await renders('image', 'succeeded')).toBe(1)
  const seconds = { kind: 'image', outcome: 'succeeded' }
  expect(await service.count('rushes_render_duration_seconds_sum', seconds)).toBeGreaterThanOrEqual(4)
})

test('labels never contain an id, a token, a key, a prompt or a URL, for any request', async () => {
  const service = await createMeasured()
  const { body } = await ask(service, 'POST', RUNS, FOX)
  const run = await ended(service, body.id)
  const output = new URL(run.output.urls[0]).pathname
  expect((await ask(service, 'GET', output)).status).toBe(200)
  const secrets = [body.id, output.split('/')[2] ?? '', service.apiKey, 'secret', 'rk_', 'canary']
  const word = fc.string({ unit: anyCharacter, minLength: 1 }).map(encodeURIComponent)
  const path = fc.array(word, { minLength: 1 }).map((words) => `/${words.join('/')}/canary`)
  const prefix = fc.constantFrom('', RUNS, '/outputs', `/outputs/${secrets[1]}`, '/healthz', '/api')
  await fc.assert(
    fc.asyncProperty(prefix, path, word, async (start, end, query) => {
      await ask(service, 'GET', `${start}${end}?key=canary&${query}`)
    }),
    { numRuns: 100 },
  )
  for (const method of ['PUT', 'DELETE', 'PROPFIND', 'M-SEARCH'])
    await service.fetch({ method: method as 'GET', url: new URL('/canary', service.baseUrl), headers: {} })
  const text = await service.metrics.text()
  for (const secret of secrets) expect(text).not.toContain(secret)
  const requests = samplesOf(text, 'rushes_http_requests_total')
  const routes = new Set(requests.map(({ labels }) => labels.route))
  expect([...routes].sort()).toEqual([RUNS, `${RUNS}/:id`, '/outputs/:token/:name', 'none'].sort())
  expect(requests.length).toBeLessThan(15)
})

test('every metric has a help text, a conventional name and an entry in the docs', async () => {
  const service = await createMeasured()
  await addAccount(service, 'acme')
  await finished(service, FOX)
  const text = await service.metrics.text()
  const families = [...text.matchAll(/^# HELP (\w+) (.+)\n# TYPE \w+ (\w+)(?:\n\w+\{(.*)\})?/gm)]
  const docs = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
  expect(families).toHaveLength(4)
  for (const [, name = '', help, type, first = ''] of families) {
    expect(help, name).toMatch(/^[A-Z].*\.$/)
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    const labels = Object.keys(labelsOf(first)).filter((label) => label !== 'le')
    const cell = labels.map((label) => `\`${label}\``).join(', ')
    expect(docs).toContain(`| \`${name}\` | ${type} | ${cell} |`.replace('|  |', '| |'))
  }
  const alerts = readFileSync(new URL('../../../deploy/prometheus/alerts.yml', import.meta.url), 'utf8')
  const watched = alerts.match(/\brushes_\w+/g) ?? []
  expect(watched.length).toBeGreaterThan(5)
  for (const name of watched) expect(text).toContain(`# HELP ${name.replace(/_count$/, '')} `)
})

test('serves the other metrics in time while the database hangs', async () => {
  const clock = createManualClock()
  const metrics = createMetrics(clock)
  metrics.observeQueue({ queueLengths: () => new Promise(() => {}) })
  const began = clock.monotonic()
  const text = await clock.runUntil(metrics.text())
  expect(samplesOf(text, 'rushes_queue_length')).toEqual([])
  expect(text).toContain('rushes_credits_charged_total 0')
  expect(clock.monotonic() - began).toBeLessThanOrEqual(1_000)
})

test('the metrics port serves only /metrics, without a key, and the port of the service does not', async () => {
  const service = await createMeasured()
  const { url } = await service.metrics.listen(FREE)
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
  const answer = await fetch(url)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(await answer.text()).toContain('# HELP rushes_queue_length ')
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
  for (const path of ['/', '/metrics/x', '/healthz', '/api/v1/runs']) {
    const other = await fetch(new URL(path, url))
    expect([other.status, await other.json()]).toEqual([
      404,
      { error: { code: 'not_found', message: 'Not found.' } },
    ])
  }
  expect((await fetch(url, { method: 'POST' })).status).toBe(404)
  expect((await ask(service, 'GET', '/metrics')).status).toBe(404)
})

test('a metrics port in use is a usage error that names the flag', async () => {
  const { metrics: other } = await createMeasured()
  const port = Number(new URL((await other.listen(FREE)).url).port)
  const metrics = createMetrics(createManualClock())
  onTestFinished(() => metrics.close())
  await expect(metrics.listen({ ...FREE, port })).rejects.toMatchObject({
    code: 'usage',
    exitCode: 2,
    message: `Port ${port} on 127.0.0.1 is in use.`,
    hint: 'Choose another one with --metrics-port, or use --metrics-port 0 for a free port.',
  })
})
