/** Each fault does on the wire what it says: in the service itself, and in the proxy of the tests before it. */
import { describe, expect, test } from 'vitest'
import { parseFault } from '../../../src/service/faults/grammar.js'
import { LOCAL_MODELS } from '../../../src/service/names.js'
import { createInstantEngine } from '../../support/engines.js'
import { createFaultyProxy } from '../../support/faults.js'
import { bodyOf, dial, isWhole, type Line } from '../../support/line.js'
import { createListeningService, finished, type TestService } from '../../support/service.js'
import { until } from '../../support/until.js'

const RUNS = '/api/v1/runs'
const BYTES = Buffer.alloc(5_000, 'abcdefghij')

interface Bench extends TestService {
  /** Where it goes wrong. */
  readonly url: string
  readonly struck: readonly string[]
  /** How many runs the service holds, by the jobs that its engine got. */
  accepted(): number
}

type Place = (faults: readonly string[]) => Promise<Bench>

const engineOf = () => createInstantEngine({ bytes: BYTES })

/** `serve --fault`: the service itself. */
const inTheService: Place = async (faults) => {
  const engine = engineOf()
  const struck: string[] = []
  const service = await createListeningService({
    engine,
    faults: faults.map(parseFault),
    onFault: (words) => struck.push(words),
  })
  return { ...service, url: service.baseUrl, struck, accepted: () => engine.jobs.length }
}

/** The proxy, before a service in which nothing goes wrong. */
const inTheProxy: Place = async (faults) => {
  const engine = engineOf()
  const service = await createListeningService({ engine })
  const { url, strikes } = await createFaultyProxy(service.baseUrl, faults, service.clock)
  return { ...service, url, struck: strikes, accepted: () => engine.jobs.length }
}

const post = ({ apiKey }: Bench, prompt = 'a fox'): string => {
  const body = JSON.stringify({ model: LOCAL_MODELS.image, input: { prompt } })
  return `POST ${RUNS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
const get = ({ apiKey }: Bench, path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\n\r\n`

/** Its id, and the path of its output; made beside the faults, which strike over the wire alone. */
async function finishedRun(bench: Bench): Promise<{ id: string; output: string }> {
  const run = await finished(bench, { model: LOCAL_MODELS.image, input: { prompt: 'a fox' } })
  return { id: run.id, output: new URL(run.output.urls[0]).pathname }
}

/** Says one thing on a connection of its own, and what was heard until an answer was whole or the line ended. */
async function hear(bench: Bench, text: string) {
  const line = dial(bench.url)
  line.send(text)
  await bench.clock.runUntil(line.until(isWhole))
  return line
}

/** Resolves when the other side has read what the line sent: it reads connections in their order, and answers a later one. */
async function isRead(bench: Bench, line: Line): Promise<void> {
  await line.connected()
  expect(statusLine((await hear(bench, get(bench, `${RUNS}/run_unknown`))).heard)).toBe(
    'HTTP/1.1 404 Not Found',
  )
}

const statusLine = (heard: string): string => heard.split('\r\n')[0] ?? ''
/** Turns of the clock in which the service renders whatever it has accepted. */
const rendered = (bench: Bench) => bench.clock.advance(2_000)

describe.each([
  ['the service', inTheService],
  ['the proxy', inTheProxy],
] as const)('%s', (_, create) => {
  test('a status, its code and its headers, as often as they are asked for; the service does not act', async () => {
    const bench = await create(['create:429:RATE_LIMITED;retry-after=3:2'])
    for (let time = 0; time < 2; time++) {
      const { heard } = await hear(bench, post(bench))
      expect(statusLine(heard)).toBe('HTTP/1.1 429 Too Many Requests')
      expect(heard).toMatch(/^retry-after: 3\r$/im)
      expect(JSON.parse(bodyOf(heard)).error.code).toBe('RATE_LIMITED')
    }
    await rendered(bench)
    expect(bench.accepted()).toBe(0)
    expect(statusLine((await hear(bench, post(bench))).heard)).toBe('HTTP/1.1 201 Created')
    expect(bench.struck).toEqual(['create answered 429 RATE_LIMITED', 'create answered 429 RATE_LIMITED'])
  })

  test('a status after the service has acted', async () => {
    const bench = await create(['create:502:acted:1'])
    const { heard } = await hear(bench, post(bench))
    expect(statusLine(heard)).toBe('HTTP/1.1 502 Bad Gateway')
    expect(JSON.parse(bodyOf(heard))).toEqual({ error: { message: 'Bad Gateway' } })
    await rendered(bench)
    expect(bench.accepted()).toBe(1)
  })

  test.each([
    ['create:reset', 0],
    ['create:reset:upload=10', 0],
    ['create:lose', 1],
  ])('%s: not a byte, a reset, and %d runs', async (fault, runs) => {
    const bench = await create([fault])
    const line = await hear(bench, post(bench))
    expect([line.heard, await line.hungUp()]).toEqual(['', 'reset'])
    await rendered(bench)
    expect(bench.accepted()).toBe(runs)
  })

  test('an upload is reset while it still goes on', async () => {
    const bench = await create(['create:reset:upload=1000'])
    const line = dial(bench.url)
    line.send(`POST ${RUNS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bench.apiKey}\r\n`)
    line.send(`Content-Length: 100000\r\n\r\n${'x'.repeat(999)}`)
    await isRead(bench, line)
    expect(line.ended).toBeUndefined()
    line.send('x')
    expect(await bench.clock.runUntil(line.hungUp())).toBe('reset')
    expect(line.heard).toBe('')
  })

  test.each([0, 1, 1_234, 4_999])('a reset after %d bytes of the body', async (bytes) => {
    const bench = await create([`output:reset:${bytes}:1`])
    const { output } = await finishedRun(bench)
    const line = await hear(bench, get(bench, output))
    expect(await line.hungUp()).toBe('reset')
    expect(line.heard).toMatch(/^content-length: 5000\r$/im)
    expect(bodyOf(line.heard)).toBe(BYTES.toString().slice(0, bytes))
    expect(bodyOf((await hear(bench, get(bench, output))).heard)).toBe(BYTES.toString())
  })

  test.each([
    ['output:truncate:7', 7],
    ['output:truncate', 2_500],
  ])('%s ends in good order, and short', async (fault, bytes) => {
    const bench = await create([fault])
    const { output } = await finishedRun(bench)
    const line = await hear(bench, get(bench, output))
    expect(await line.hungUp()).toBe('closed')
    expect(line.heard).toMatch(/^content-length: 5000\r$/im)
    expect(bodyOf(line.heard)).toBe(BYTES.toString().slice(0, bytes))
  })

  test('a stall without an answer, and one after some bytes: the connection stays open', async () => {
    const bench = await create(['create:stall::1', 'output:stall:100'])
    const { output } = await finishedRun(bench)
    const silent = dial(bench.url)
    silent.send(post(bench))
    const half = dial(bench.url)
    half.send(get(bench, output))
    await bench.clock.runUntil(half.until((heard) => bodyOf(heard).length >= 100))
    await isRead(bench, silent)
    await isRead(bench, half)
    expect([silent.heard, silent.ended]).toEqual(['', undefined])
    expect([bodyOf(half.heard).length, half.ended]).toEqual([100, undefined])
    await rendered(bench)
    expect(bench.accepted()).toBe(1)
  })

  test('a used connection is closed when the next request comes; a new one is not', async () => {
    const bench = await create(['create:close::1'])
    const line = dial(bench.url)
    line.send(post(bench))
    await bench.clock.runUntil(line.until(isWhole))
    const heard = line.heard
    expect(statusLine(heard)).toBe('HTTP/1.1 201 Created')
    line.send(post(bench))
    expect(await bench.clock.runUntil(line.hungUp())).toBe('closed')
    expect(line.heard).toBe(heard)
    await rendered(bench)
    expect(bench.accepted()).toBe(1)
  })
})

// The rest is the same code in the proxy.
describe('the service alone', () => {
  test.each([103, 204, 304])('%d has no body', async (status) => {
    const bench = await inTheService([`status:${status}::1`])
    const line = dial(bench.url)
    line.send(get(bench, `${RUNS}/x`))
    line.send(get(bench, `${RUNS}/x`))
    await bench.clock.runUntil(line.until((heard) => heard.includes('run_not_found')))
    expect(line.heard.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`, 'HTTP/1.1 404'])
    expect(line.heard).toMatch(/^HTTP[^{]*\r\n\r\nHTTP/)
  })

  test('after an answer that is made up the connection is good for more', async () => {
    const bench = await inTheService(['create:500::1'])
    const line = dial(bench.url)
    line.send(post(bench, 'x'.repeat(200_000)))
    line.send(post(bench))
    await bench.clock.runUntil(line.until((heard) => heard.includes('201 Created')))
    expect(line.heard.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 500', 'HTTP/1.1 201'])
  })

  test.each([1, 12, 40])('a reset after %d bytes of the head', async (bytes) => {
    const bench = await inTheService([`create:reset:head=${bytes}`])
    const line = await hear(bench, post(bench))
    expect([line.heard.length, await line.hungUp()]).toEqual([bytes, 'reset'])
    expect('HTTP/1.1 201 Created\r\n'.startsWith(line.heard.slice(0, 22))).toBe(true)
  })

  test('a body of the same length in which every bit from some byte on is another', async () => {
    const bench = await inTheService(['output:corrupt:3:1'])
    const { output } = await finishedRun(bench)
    const body = bodyOf((await hear(bench, get(bench, output))).heard)
    expect(body.length).toBe(5_000)
    expect(body.slice(0, 3)).toBe('abc')
    expect(
      Buffer.from(Buffer.from(body, 'latin1').map((byte, at) => (at < 3 ? byte : byte ^ 0xff))).equals(BYTES),
    ).toBe(true)
  })

  test.each([
    ['html', /text\/html/, /<!doctype html>/],
    ['text', /text\/plain/, /^OK$/],
    ['empty', /application\/json/, /^$/],
    ['list', /application\/json/, /^\[\]$/],
    ['object', /application\/json/, /^\{"ok":true\}$/],
  ])('nonsense of the kind %s, after the service has acted', async (kind, type, body) => {
    const bench = await inTheService([`any:nonsense:${kind}`])
    const { heard } = await hear(bench, post(bench))
    expect(statusLine(heard)).toBe('HTTP/1.1 201 Created')
    expect(heard).toMatch(type)
    expect(heard).not.toMatch(/^location:/im)
    expect(bodyOf(heard)).toMatch(body)
    await rendered(bench)
    expect(bench.accepted()).toBe(1)
    expect(statusLine((await hear(bench, get(bench, `${RUNS}/x`))).heard)).toBe('HTTP/1.1 200 OK')
  })

  test('nonsense beyond every limit, and nonsense that is no HTTP', async () => {
    const bench = await inTheService(['status:nonsense:huge:1', 'status:nonsense:no-http:1'])
    expect((await hear(bench, get(bench, `${RUNS}/x`))).heard.length).toBeGreaterThan(8 * 1_048_576)
    const line = await hear(bench, get(bench, `${RUNS}/x`))
    expect([await line.hungUp(), line.heard]).toEqual(['closed', 'SSH-2.0-OpenSSH_9.6\r\n'])
  })

  test('a delay by the clock, along with whatever else strikes', async () => {
    const bench = await inTheService(['latency:800ms', 'status:503::1'])
    for (const status of [503, 404]) {
      const before = bench.clock.monotonic()
      const { heard } = await hear(bench, get(bench, `${RUNS}/x`))
      expect(statusLine(heard)).toContain(String(status))
      expect(bench.clock.monotonic() - before).toBeGreaterThanOrEqual(800)
    }
    expect(bench.struck).toEqual([
      'status answered 503',
      'status delayed by 800 ms',
      'status delayed by 800 ms',
    ])
  })

  test('a body that comes no faster than it may', async () => {
    const bench = await inTheService(['output:slow:1kB'])
    const { output } = await finishedRun(bench)
    const before = bench.clock.monotonic()
    const { heard } = await hear(bench, get(bench, output))
    expect(bodyOf(heard)).toBe(BYTES.toString())
    expect(bench.clock.monotonic() - before).toBeGreaterThanOrEqual(5_000)
  })

  test('a redirect that keeps the method', async () => {
    const bench = await inTheService(['create:redirect:https://elsewhere.example/x:1'])
    const { heard } = await hear(bench, post(bench))
    expect(statusLine(heard)).toBe('HTTP/1.1 307 Temporary Redirect')
    expect(heard).toMatch(/^location: https:\/\/elsewhere\.example\/x\r$/im)
  })

  test('a link that has expired stays so, and the run has another one', async () => {
    const bench = await inTheService(['output:expire:403:1'])
    const { id, output } = await finishedRun(bench)
    const linkNow = async () => {
      const { heard } = await hear(bench, get(bench, `${RUNS}/${id}`))
      const url = new URL(JSON.parse(bodyOf(heard)).output.urls[0])
      return `${url.pathname}${url.search}`
    }
    expect(await linkNow()).toBe(output)
    for (let time = 0; time < 2; time++)
      expect(statusLine((await hear(bench, get(bench, output))).heard)).toBe('HTTP/1.1 403 Forbidden')
    const fresh = await linkNow()
    expect(fresh).not.toBe(output)
    expect(bodyOf((await hear(bench, get(bench, fresh))).heard)).toBe(BYTES.toString())
    expect(await linkNow()).toBe(fresh)
  })

  test('runs that fail, and runs that never end', async () => {
    const bench = await inTheService(['run:fail:out of paint:1', 'run:never::1'])
    const ids: string[] = []
    for (let run = 0; run < 3; run++) {
      const { heard } = await hear(bench, post(bench))
      ids.push(JSON.parse(bodyOf(heard)).id)
    }
    await rendered(bench)
    const runs = []
    for (const id of ids) {
      const { heard } = await hear(bench, get(bench, `${RUNS}/${id}`))
      runs.push(JSON.parse(bodyOf(heard)))
    }
    expect(runs).toMatchObject([
      { status: 'failed', output: null, error: { code: 'render_failed', message: 'out of paint' } },
      { status: 'processing', output: null, error: null, finished_at: null },
      { status: 'succeeded', output: { urls: [expect.any(String)] }, error: null },
    ])
    expect(bench.struck).toEqual(['run will end as failed', 'run will never end'])
  })

  test('every other request is left alone', async () => {
    const bench = await inTheService(['any:lose', 'run:fail', 'latency:1h'])
    for (const [path, status] of [
      ['/healthz', 200],
      ['/', 404],
      ['/outputs', 404],
      [RUNS, 404],
    ] as const)
      expect(statusLine((await hear(bench, get(bench, path))).heard)).toContain(` ${status} `)
    expect(bench.struck).toEqual([])
  })
})

test('the service closes at once, whatever its faults hold open', async () => {
  const bench = await inTheService(['create:stall', 'output:stall:1', 'status:delay:1h'])
  const { id, output } = await finishedRun(bench)
  const lines = [post(bench), get(bench, output), get(bench, `${RUNS}/${id}`)].map((text) => {
    const line = dial(bench.url)
    line.send(text)
    return line
  })
  await until('three faults', () => bench.struck.length === 3)
  await lines[1]?.until((heard) => bodyOf(heard) !== '')
  const before = bench.clock.monotonic()
  await bench.clock.runUntil(bench.service.close())
  for (const line of lines) await line.hungUp()
  expect(bench.clock.monotonic() - before).toBeLessThan(3_000)
  expect(bench.complaints).toEqual([])
})

test('the proxy counts what reached the service, and can be told what comes next', async () => {
  const bench = await inTheProxy([])
  const proxy = await createFaultyProxy(bench.baseUrl, ['create:500'], bench.clock)
  proxy.next('create', 'lose')
  proxy.next('create', 'reset')
  proxy.add('create:503')
  const through = { ...bench, url: proxy.url }
  for (let time = 0; time < 3; time++) await hear(through, post(through))
  expect(proxy.strikes).toEqual([
    'create lost its response after the service acted',
    'create was reset before the service acted',
    'create answered 500',
  ])
  expect(proxy.seen.map(({ method, path, place, reached }) => [method, path, place, reached])).toEqual([
    ['POST', RUNS, 'create', true],
    ['POST', RUNS, 'create', false],
    ['POST', RUNS, 'create', false],
  ])
  expect(proxy.reached('create')).toBe(1)
  expect(proxy.seen.every(({ atMs }) => atMs <= bench.clock.monotonic())).toBe(true)
})

test('outputs pass the proxy too: the addresses of the service become its own', async () => {
  const bench = await inTheProxy([])
  const { id } = await finishedRun(bench)
  const { heard } = await hear(bench, get(bench, `${RUNS}/${id}`))
  expect(JSON.parse(bodyOf(heard)).output.urls[0]).toMatch(new RegExp(`^${bench.url}/outputs/`))
})
