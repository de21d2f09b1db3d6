/** `serve --fault`: what each fault does to a connection, and what the service has done then. */
import { expect, test } from 'vitest'
import { parseFault } from '../../../src/service/http/faults.js'
import {
  createInstantEngine,
  createTestService,
  FOX,
  finished,
  type TestService,
  until,
} from '../../support/index.js'
import { bodyOf, createHead, dial, isWhole } from '../../support/line.js'

const RUNS = '/api/v1/runs'

async function serve(...faults: readonly string[]) {
  const engine = createInstantEngine()
  const struck: string[] = []
  const service = await createTestService({
    port: 0,
    engine,
    faults: faults.map(parseFault),
    log: (line) => struck.push(line.replace('fault: ', '')),
  })
  return { ...service, struck, engine }
}

const post = (service: TestService): string => {
  const body = JSON.stringify(FOX)
  return `${createHead(service)}Content-Length: ${body.length}\r\n\r\n${body}`
}
const get = ({ apiKey }: TestService, path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\n\r\n`

async function hear(service: TestService, text: string) {
  const line = dial(service.baseUrl)
  line.send(text)
  await service.clock.runUntil(line.until(isWhole))
  return line
}

const statusOf = (heard: string): string => heard.split('\r\n')[0] ?? ''

/** The path of its output. Faults apply only to requests over the port. */
async function outputOf(service: TestService): Promise<string> {
  const run = await finished(service, FOX)
  return new URL(run.output.urls[0]).pathname
}

test('a status with its code answers as often as it is asked to, and the service does not act', async () => {
  const service = await serve('create:429:RATE_LIMITED:2', 'status:503:1')
  for (let time = 0; time < 2; time++) {
    const { heard } = await hear(service, post(service))
    expect(statusOf(heard)).toBe('HTTP/1.1 429 Too Many Requests')
    expect(JSON.parse(bodyOf(heard)).error).toEqual({
      code: 'RATE_LIMITED',
      message: expect.stringMatching(/^Rate limit exceeded/),
    })
  }
  expect(service.engine.jobs).toHaveLength(0)
  expect(statusOf((await hear(service, post(service))).heard)).toBe('HTTP/1.1 201 Created')
  const { heard } = await hear(service, get(service, `${RUNS}/x`))
  expect(JSON.parse(bodyOf(heard))).toEqual({ error: { message: 'Service Unavailable' } })
  expect(statusOf((await hear(service, get(service, `${RUNS}/x`))).heard)).toContain('404')
  expect(service.struck).toEqual([
    'create answered 429 RATE_LIMITED',
    'create answered 429 RATE_LIMITED',
    'status answered 503',
  ])
})

test.each([
  ['create:reset', 0],
  ['create:lose', 1],
])('%s sends no byte and resets the connection, after %d runs were created', async (fault, runs) => {
  const service = await serve(fault)
  const line = await hear(service, post(service))
  expect([line.heard, await line.hungUp()]).toEqual(['', 'reset'])
  await service.clock.advance(2_000)
  expect(service.engine.jobs).toHaveLength(runs)
})

test.each(['output:reset:1', 'output:lose::1'])('%s resets one download', async (fault) => {
  const service = await serve(fault)
  const output = await outputOf(service)
  const line = await hear(service, get(service, output))
  expect([line.heard, await line.hungUp()]).toEqual(['', 'reset'])
  expect(statusOf((await hear(service, get(service, output))).heard)).toBe('HTTP/1.1 200 OK')
})

test('a stalled request gets no answer, and a closing service ends it at once', async () => {
  const service = await serve('create:stall', 'latency:1h')
  const [silent, late] = [dial(service.baseUrl), dial(service.baseUrl)]
  silent.send(post(service))
  late.send(get(service, `${RUNS}/x`))
  await until('three faults', () => service.struck.length === 3)
  expect([silent.heard, silent.ended, late.heard]).toEqual(['', undefined, ''])
  const before = service.clock.monotonic()
  await service.clock.runUntil(service.service.close())
  await silent.hungUp()
  expect(service.clock.monotonic() - before).toBeLessThan(3_000)
  expect(service.engine.jobs).toHaveLength(0)
})

test('a latency delays all answers, beside another fault', async () => {
  const service = await serve('latency:800ms', 'status:503:1')
  for (const status of [503, 404]) {
    const before = service.clock.monotonic()
    expect(statusOf((await hear(service, get(service, `${RUNS}/x`))).heard)).toContain(String(status))
    expect(service.clock.monotonic() - before).toBeGreaterThanOrEqual(800)
  }
})

test('run:fail fails runs, and refunds them', async () => {
  const service = await serve('run:fail:1')
  expect(await finished(service, FOX)).toMatchObject({
    status: 'failed',
    error: { code: 'render_failed', message: 'The service injected this fault. Its price was refunded.' },
  })
  expect(await finished(service, FOX)).toMatchObject({ status: 'succeeded' })
  expect(service.struck).toEqual(['run will end as failed'])
})
