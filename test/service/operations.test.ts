import { expect, test } from 'vitest'
import { RendererCrashed } from '../../src/service/engines/engine.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { DatabaseUnavailable } from '../../src/service/store/sql.js'
import { createErrorLog } from '../../src/service/worker/log.js'
import {
  ask,
  createCommandedEngine,
  created,
  createManualClock,
  createTestService,
  finished,
  until,
} from '../support/index.js'
import { createHead, dial } from '../support/line.js'

const RUNS = '/api/v1/runs'
const A_FOX = { model: LOCAL_MODELS.image, input: { prompt: 'a secret fox' } }

/** Says something; what the other side said until it hung up. */
async function heardAfter(url: string, text: string, more?: string): Promise<string> {
  const line = dial(url)
  line.send(text)
  const trickle = more === undefined ? undefined : setInterval(() => line.send(more), 20)
  await line.hungUp()
  clearInterval(trickle)
  return line.heard
}

test('health checks need no key and count against no limit', async () => {
  const service = await createTestService()
  for (let time = 0; time < 30; time++)
    expect((await ask(service, 'GET', '/healthz', undefined, { authorization: '' })).status).toBe(200)
  const ready = await ask(service, 'GET', '/readyz', undefined, { authorization: '' })
  expect([ready.status, ready.body]).toEqual([200, { status: 'ready' }])
  expect((await ask(service, 'POST', '/healthz', {})).status).toBe(404)
})

test('a service that is closing is alive but not ready', async () => {
  const service = await createTestService({ port: 0, engine: createCommandedEngine({ stuck: true }) })
  await created(service, A_FOX)
  await service.clock.advance(1_000)
  const line = dial(service.baseUrl)
  // A request that has begun keeps its connection while the service closes.
  line.send('GET /readyz HTTP/1.1\r\nHost: x\r\n')
  // The service reads connections in their order: once it answers on a later one, the request has begun.
  await heardAfter(service.baseUrl, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const closing = service.service.close()
  line.send('\r\n')
  await line.responses(1)
  expect(line.heard).toMatch(/^HTTP\/1\.1 503/)
  expect(line.heard).toContain('"code":"not_ready"')
  await service.clock.runUntil(closing)
})

test('errors of the service are one line each, without keys, output URLs and prompts', async () => {
  const lines: string[] = []
  let tries = 0
  const engine = createCommandedEngine()
  const service = await createTestService({
    engine: {
      async render(job) {
        if (tries++ === 0)
          throw new RendererCrashed('the renderer crashed (SIGSEGV)', 'words about a secret fox')
        const made = engine.render(job)
        await until('the render', () => engine.waiting === 1)
        engine.finish()
        return made
      },
    },
    log: (line, stack) => lines.push(line, stack ?? ''),
  })
  const run = await finished(service, A_FOX)
  expect((await ask(service, 'GET', new URL(run.output.urls[0]).pathname)).status).toBe(200)
  await ask(service, 'GET', '/nowhere?key=rk_leaked')
  await ask(service, 'GET', `${RUNS}/x`, undefined, { key: 'rk_wrong' })
  expect(lines).toEqual(['the renderer crashed (SIGSEGV)', expect.stringContaining('at Object.render')])
})

test('a database that cannot be used is one line a minute', async () => {
  const lines: string[] = []
  const clock = createManualClock()
  const report = createErrorLog((line) => lines.push(line), clock)
  const error = new DatabaseUnavailable(new Error('connection refused'))
  report(error)
  report(error)
  expect(lines).toEqual(['The database or the disk cannot be used: connection refused.'])
  await clock.advance(60_000)
  report(error)
  expect(lines).toHaveLength(2)
})

test('closes connections that never finish their headers or send nothing', async () => {
  const { baseUrl } = await createTestService({
    port: 0,
    httpLimits: { headersMs: 200, checkIntervalMs: 50 },
  })
  const [slow, silent] = await Promise.all([
    heardAfter(baseUrl, `GET ${RUNS}/x HTTP/1.1\r\nHost: x\r\n`, 'X-A: b\r\n'),
    heardAfter(baseUrl, ''),
  ])
  expect(slow).toMatch(/^HTTP\/1\.1 408 /)
  expect(silent).toMatch(/^(HTTP\/1\.1 408 |$)/)
})

test('refuses a body that arrives too slowly with 408', async () => {
  const service = await createTestService({
    port: 0,
    httpLimits: { headersMs: 100, requestMs: 300, checkIntervalMs: 50 },
  })
  const heard = await heardAfter(service.baseUrl, `${createHead(service)}Content-Length: 50000\r\n\r\n{`)
  expect(heard).toMatch(/^HTTP\/1\.1 408 /)
})

test('answers 431 to headers that are too large, and closes connections beyond the limit', async () => {
  const { baseUrl } = await createTestService({ port: 0, httpLimits: { connections: 2 } })
  const large = `GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ${'x'.repeat(20_000)}\r\n\r\n`
  const answer = await heardAfter(baseUrl, large)
  expect(answer).toMatch(/^HTTP\/1\.1 431 /)
  for (const line of [dial(baseUrl), dial(baseUrl)]) await line.connected()
  expect(await heardAfter(baseUrl, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')).toBe('')
})
