/** The real network on loopback: what was certainly not sent, what may have been, and which way it goes. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import net, {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  type LookupFunction,
  type Server,
  type Socket,
} from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { GRACE_AFTER_SUSPENSION_MS, SILENCE_TIMEOUT_MS } from '../../src/host/exchange.js'
import { HttpFailure, type ServerRequest } from '../../src/host/http.js'
import { readText } from '../../src/host/response-body.js'
import { createNetwork, type Network, type NetworkOptions } from '../../src/host/undici.js'
import { createManualClock } from '../support/clock.js'
import { until } from '../support/until.js'

const KEY = 'sk-never-seen-anywhere'
const REASON = new Error('the caller’s own')
const MIB = 1_048_576

function newNetwork(options: Partial<NetworkOptions> = {}): Network {
  const network = createNetwork({ env: {}, clock: createManualClock(), ...options })
  onTestFinished(() => network.close())
  return network
}

async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const serve = async (listener: RequestListener) => {
  const server = createHttpServer({ keepAliveTimeout: 60_000 }, listener)
  let connections = 0
  server.on('connection', () => connections++)
  return { url: `http://127.0.0.1:${await listening(server)}/`, connections: () => connections }
}

/** A server of bytes, for answers that no HTTP server would give. */
const serveRaw = async (onConnection: (socket: Socket) => void): Promise<string> => {
  const server = createNetServer((socket) => {
    socket.on('error', () => {})
    onConnection(socket)
  })
  return `http://127.0.0.1:${await listening(server)}/`
}

const get = (url: string, more: Partial<ServerRequest> = {}): ServerRequest => ({
  method: 'GET',
  url: new URL(url),
  headers: { authorization: `Bearer ${KEY}` },
  ...more,
})
const post = (
  url: string,
  body: Uint8Array = Buffer.from('{}'),
  more: Partial<ServerRequest> = {},
): ServerRequest => get(url, { method: 'POST', body, fresh: true, ...more })

async function failure(promise: Promise<unknown>): Promise<HttpFailure> {
  const error = await promise.then(
    () => new Error('was expected to fail'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof HttpFailure)) throw error
  expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toContain(KEY)
  return error
}

const everyNameIsHere: LookupFunction = (_, options, found) =>
  options.all ? found(null, [{ address: '127.0.0.1', family: 4 }]) : found(null, '127.0.0.1', 4)

const noNameIsFound: LookupFunction = (hostname, _, found) =>
  found(Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' }), '', 0)

/** A promise and what fulfils it. */
function awaited<Value>() {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve: (value: Value) => resolve(value) }
}

const received = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('an exchange', () => {
  it('brings the status, the headers in any case, and the body', async () => {
    const { url } = await serve((request, response) => {
      response.writeHead(418, { 'Retry-After': '3', 'set-cookie': ['a=1', 'b=2'] })
      response.end(`${request.method} ${request.url}`)
    })
    const response = await newNetwork().fetch(get(`${url}a%2Fb?c`))
    expect([response.status, response.header('RETRY-AFTER'), response.header('Set-Cookie')]).toEqual([
      418,
      '3',
      'a=1, b=2',
    ])
    expect(response.header('location')).toBeUndefined()
    expect(await readText(response, 1_000)).toBe('GET /a%2Fb?c')
  })

  it.each([0, 1_000_000])('sends a body of %i bytes, with its length', async (size) => {
    const body = Buffer.alloc(size, 'abcdefg')
    const { url } = await serve(async (request, response) => {
      const whole = (await received(request)).equals(body)
      response.end(`${whole} ${request.headers['content-length']} ${request.headers['transfer-encoding']}`)
    })
    expect(await readText(await newNetwork().fetch(post(url, body)), 1_000)).toBe(`true ${size} undefined`)
  })

  it('hears a refusal that comes before the body is read', async () => {
    const { url } = await serve((_, response) => response.writeHead(413).end('too large'))
    const response = await newNetwork().fetch(post(url, Buffer.alloc(200_000)))
    expect([response.status, await readText(response, 1_000)]).toEqual([413, 'too large'])
  })
})

describe('certainly not sent', () => {
  it('a refused connection, at each address of the name', async () => {
    const error = await failure(newNetwork().fetch(post('http://localhost:1/')))
    expect(error).toMatchObject({ sent: false, code: 'ECONNREFUSED', message: 'the connection was refused' })
  })

  it('a name that is not found', async () => {
    const error = await failure(newNetwork({ lookup: noNameIsFound }).fetch(post('http://nowhere.invalid/')))
    expect(error).toMatchObject({
      sent: false,
      code: 'ENOTFOUND',
      message: 'the host name was not found',
    })
  })

  it('a certificate that nobody trusts', async ({ skip }) => {
    if (certificate === undefined) return skip('no openssl')
    let requests = 0
    const port = await listening(createHttpsServer(certificate, () => requests++))
    const error = await failure(newNetwork().fetch(post(`https://localhost:${port}/`)))
    expect(error).toMatchObject({
      sent: false,
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      message: 'the certificate is not trusted (self-signed certificate)',
      advice: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    })
    expect(requests).toBe(0)
  })

  it('TLS with a server that speaks none', async () => {
    const url = await serveRaw((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const error = await failure(newNetwork().fetch(post(url.replace('http:', 'https:'))))
    expect(error).toMatchObject({ sent: false, message: 'the server does not use TLS' })
  })

  it.each([
    ['https://api.test/', 403],
    ['http://api.test/', 407],
  ])('a proxy that opens no tunnel to %s: %i', async (url, refuse) => {
    const proxy = await createProxy({ refuse })
    const network = newNetwork({ env: { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url } })
    expect(await failure(network.fetch(post(url)))).toMatchObject({
      sent: false,
      message: `the proxy refused the connection (${refuse})`,
      advice: expect.stringContaining('NO_PROXY'),
    })
    expect(proxy.asked).toEqual([`CONNECT api.test${url.startsWith('https') ? ':443' : ':80'}`])
  })

  it.each([
    ['that refuses connections', 'http://127.0.0.1:1', 'the connection was refused', 'ECONNREFUSED'],
    ['whose name is not found', 'http://proxy.invalid:1', 'the host name was not found', 'ENOTFOUND'],
  ])('a proxy %s is named as the proxy', async (_, proxy, reason, code) => {
    const network = newNetwork({ env: { HTTPS_PROXY: proxy }, lookup: noNameIsFound })
    expect(await failure(network.fetch(post('https://api.test/')))).toMatchObject({
      sent: false,
      code,
      message: `no connection to the proxy (${reason})`,
      advice: expect.stringContaining('HTTPS_PROXY'),
    })
  })
})

describe('perhaps sent', () => {
  const INVALID = { isInvalidHttp: true, message: 'the response is not valid HTTP' }
  it.each<[string, (socket: Socket) => void, Partial<HttpFailure>]>([
    [
      'a connection that is reset after the request was read',
      (socket) => socket.resetAndDestroy(),
      { code: 'ECONNRESET', isInvalidHttp: false, message: 'the connection was reset' },
    ],
    [
      'a connection that is closed without a response',
      (socket) => socket.end(),
      { isInvalidHttp: false, message: 'the connection was closed' },
    ],
    ['a 100 Continue and nothing more', (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'), {}],
    ['a line of text', (socket) => socket.end('hello\r\n\r\n'), INVALID],
    ['an invalid header', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n'), INVALID],
    [
      'another protocol',
      (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
      INVALID,
    ],
    [
      'headers that are too large',
      (socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`),
      { isInvalidHttp: true, message: 'the headers of the response are too large' },
    ],
  ])('%s', async (_, answer, expected) => {
    const url = await serveRaw((socket) => socket.once('data', () => answer(socket)))
    expect(await failure(newNetwork().fetch(post(url)))).toMatchObject({ sent: true, ...expected })
  })

  it('a connection reset amid the body of the request', async () => {
    const url = await serveRaw((socket) => socket.once('data', () => socket.resetAndDestroy()))
    expect((await failure(newNetwork().fetch(post(url, Buffer.alloc(5_000_000))))).sent).toBe(true)
  })

  it.each([
    ['by length', 'Content-Length: 10\r\n\r\n12345'],
    ['by chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n'],
  ])('a body that is cut %s fails in the reading, after the head', async (_, rest) => {
    const url = await serveRaw((socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 201 Created\r\nLocation: /r1\r\n${rest}`))
    })
    const response = await newNetwork().fetch(post(url))
    expect([response.status, response.header('location')]).toEqual([201, '/r1'])
    expect((await failure(readText(response, 1_000))).sent).toBe(true)
  })

  it('what arrived before the connection ended is read first, however late', async () => {
    const closed = awaited<void>()
    const arrived = '{"id":"run_1","sta'
    const url = await serveRaw((socket) => {
      socket.on('close', () => closed.resolve())
      socket.once('data', () => socket.end(`HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n${arrived}`))
    })
    const response = await newNetwork().fetch(post(url))
    await closed.promise
    for (let turns = 0; turns < 5; turns++) await turn()
    let text = ''
    const read = async () => {
      for await (const chunk of response.body) text += Buffer.from(chunk).toString()
    }
    expect((await failure(read())).sent).toBe(true)
    expect(text).toBe(arrived)
  })
})

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** The time of a process that was suspended: alarms that became due meanwhile ring afterwards. */
function suspendedClock() {
  let nowMs = 0
  const alarms = new Set<{ readonly dueMs: number; readonly ring: () => void }>()
  return {
    ...systemClock,
    now: () => nowMs,
    monotonic: () => nowMs,
    alarm(ms: number, ring: () => void) {
      const alarm = { dueMs: nowMs + ms, ring }
      alarms.add(alarm)
      return () => void alarms.delete(alarm)
    },
    wakeAfter(ms: number) {
      nowMs += ms
      for (const alarm of [...alarms]) if (alarm.dueMs <= nowMs && alarms.delete(alarm)) alarm.ring()
    },
  }
}

describe('a connection that ends with its answer', () => {
  const SIZES = Array.from({ length: 11 }, (_, at) => 200_000 + at * 74_234)

  /** What comes of an answer that is taken slowly: the bytes, or the failure. */
  async function taken(size: number, head: string, ending: 'FIN' | 'RST'): Promise<number | HttpFailure> {
    const url = await serveRaw((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`)
        if (head.includes('chunked')) socket.write(`${size.toString(16)}\r\n`)
        socket.write(Buffer.alloc(size, 'a'))
        const last = head.includes('chunked') ? '\r\n0\r\n\r\n' : ''
        if (ending === 'FIN') socket.end(last)
        else socket.write(last, () => setTimeout(() => socket.resetAndDestroy(), 5))
      })
    })
    let bytes = 0
    try {
      for await (const chunk of (await newNetwork().fetch(get(url))).body) {
        bytes += chunk.byteLength
        for (let turns = 0; turns < 5; turns++) await turn()
      }
      return bytes
    } catch (error) {
      if (error instanceof HttpFailure) return error
      throw error
    }
  }

  const WITH_LENGTH = (size: number) => `Connection: close\r\nContent-Length: ${size}`
  const CHUNKED = 'Connection: close\r\nTransfer-Encoding: chunked'
  const isWhole = (found: number | HttpFailure, size: number) => found === size
  const isFailure = (found: number | HttpFailure) => found instanceof HttpFailure
  const isEither: typeof isWhole = (found, size) => isWhole(found, size) || isFailure(found)

  it.each<[string, (size: number) => string, 'FIN' | 'RST', typeof isWhole]>([
    ['with a length is whole, however slowly it is taken', WITH_LENGTH, 'FIN', isWhole],
    ['with chunks is whole, however slowly it is taken', () => CHUNKED, 'FIN', isWhole],
    ['with neither is whole, however slowly it is taken', () => 'Connection: close', 'FIN', isWhole],
    ['and breaks is whole with chunks, or a failure', () => CHUNKED, 'RST', isEither],
    [
      'and breaks is no answer where only its end tells the length',
      () => 'Connection: close',
      'RST',
      isFailure,
    ],
  ])('%s', async (_, head, ending, isExpected) => {
    for (const size of SIZES) {
      const found = await taken(size, head(size), ending)
      expect({ found, size }).toSatisfy(() => isExpected(found, size))
    }
  })
})

describe('60 s of silence', () => {
  it('before the head end the request: perhaps sent', async () => {
    const clock = createManualClock()
    const heard = awaited<void>()
    const { url } = await serve(() => heard.resolve())
    const failed = failure(newNetwork({ clock }).fetch(post(url)))
    await heard.promise
    await clock.advance(SILENCE_TIMEOUT_MS)
    expect(await failed).toMatchObject({ sent: true, message: 'no response for 60 s' })
  })

  it('do not count before the head of a slow server, but amid its body', async () => {
    const clock = createManualClock()
    const heard = awaited<ServerResponse>()
    const { url } = await serve((_, response) => heard.resolve(response))
    const asked = newNetwork({ clock }).fetch(post(url, Buffer.from('{}'), { isSlow: true }))
    const server = await heard.promise
    await clock.advance(SILENCE_TIMEOUT_MS * 30)
    server.writeHead(200, { 'content-length': '100' }).write('a')
    const failed = failure(readText(await asked, 100))
    await until('the alarm of the body', () => clock.alarms.length > 0)
    await clock.advance(SILENCE_TIMEOUT_MS)
    expect(await failed).toMatchObject({ message: 'no response for 60 s' })
  })

  it.each([false, true])(
    'of a proxy that never answers CONNECT end the request: certainly not sent (slow server: %s)',
    async (isSlow) => {
      const clock = createManualClock()
      const heard = awaited<void>()
      const proxy = await serveRaw((socket) => socket.once('data', () => heard.resolve()))
      const failed = failure(
        newNetwork({ clock, env: { HTTPS_PROXY: proxy } }).fetch(
          post('https://api.test/', undefined, { isSlow }),
        ),
      )
      await heard.promise
      await clock.advance(SILENCE_TIMEOUT_MS)
      expect(await failed).toMatchObject({ sent: false, message: 'no response for 60 s' })
    },
  )

  it('amid a body end the reading, and every chunk winds the alarm up again', async () => {
    const clock = createManualClock()
    const chunks = ['a', 'b', 'c']
    const served = awaited<() => void>()
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      const write = () => response.write(chunks.shift() ?? '')
      write()
      served.resolve(write)
    })
    const response = await newNetwork({ clock }).fetch(get(url))
    const write = await served.promise
    const body = response.body[Symbol.asyncIterator]()
    await body.next()
    for (const chunk of ['b', 'c']) {
      await clock.advance(SILENCE_TIMEOUT_MS - 1)
      write()
      expect(Buffer.from((await body.next()).value).toString()).toBe(chunk)
    }
    const failed = failure(body.next())
    await clock.advance(SILENCE_TIMEOUT_MS)
    expect(await failed).toMatchObject({ sent: true, message: 'no response for 60 s' })
  })

  it('do not count while a response is not read, and the sender is held back', async () => {
    const clock = createManualClock()
    const size = 32 * MIB
    const { url } = await serve((_, response) => response.end(Buffer.alloc(size)))
    const response = await newNetwork({ clock }).fetch(get(url))
    await until('no alarm', () => clock.alarms.length === 0)
    await clock.advance(SILENCE_TIMEOUT_MS * 2)
    let bytes = 0
    for await (const chunk of response.body) bytes += chunk.byteLength
    expect(bytes).toBe(size)
    expect(clock.alarms).toEqual([])
  })

  it.each([true, false])('leave 10 s more for the response after a suspension: %s', async (isAnswered) => {
    const clock = suspendedClock()
    const heard = awaited<() => void>()
    const { url } = await serve((_, response) => heard.resolve(() => response.end('late')))
    const asked = newNetwork({ clock }).fetch(post(url))
    const failed = isAnswered ? undefined : failure(asked)
    const answer = await heard.promise
    clock.wakeAfter(SILENCE_TIMEOUT_MS + 15_000)
    if (isAnswered) {
      answer()
      expect(await readText(await asked, 100)).toBe('late')
    } else {
      clock.wakeAfter(GRACE_AFTER_SUSPENSION_MS)
      expect(await failed).toMatchObject({ sent: true, message: 'no response for 60 s' })
    }
  })

  it.each(['process', 'machine'])(
    'send no request if the %s was suspended while it connected: another process may have sent it',
    async (suspended) => {
      const clock = suspendedClock()
      // The monotonic clock of Linux stands still while the machine sleeps.
      if (suspended === 'machine') clock.monotonic = () => 0
      let requests = 0
      const { url } = await serve((_, response) => {
        requests++
        response.setHeader('connection', 'close').end('ok')
      })
      const { fetch } = newNetwork({ clock })
      // Loads the modules, so that the next request begins to connect at once.
      await readText(await fetch(post(url)), 100)
      const failed = failure(fetch(post(url)))
      for (let step = 0; step < 5; step++) await undefined
      clock.wakeAfter(20_000)
      expect(await failed).toMatchObject({ sent: false, code: 'UND_ERR_CONNECT_TIMEOUT' })
      expect(requests).toBe(1)
    },
  )
})

describe('a response that is discarded', () => {
  it('ends its connection', async () => {
    const closed = awaited<void>()
    const { url } = await serve((request, response) => {
      request.socket.on('close', () => closed.resolve())
      response.writeHead(200, { 'content-length': '100' }).write('a')
    })
    const response = await newNetwork().fetch(get(url))
    response.discard()
    await closed.promise
  })
})

/** Sends the pieces one at a time, so that each is read by itself. */
async function writeApart(socket: Duplex, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece)
    await turn()
    await turn()
  }
}

describe('a 100 Continue that nobody asked for', () => {
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
  const WITH_HEADERS = 'HTTP/1.1 100 Go on\r\nDate: today\r\nContent-Length: 5\r\n\r\n'
  const CREATED = 'HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok'

  it.each([
    ['before the answer', [CONTINUE, CREATED]],
    ['byte by byte', [...WITH_HEADERS, ...CREATED]],
  ])('%s is skipped, and the connection is kept', async (_, pieces) => {
    let connections = 0
    const url = await serveRaw((socket) => {
      connections++
      socket.on('data', () => void writeApart(socket, pieces))
    })
    const network = newNetwork()
    for (const request of [post(url), post(url), get(url, { fresh: true })]) {
      const response = await network.fetch(request)
      expect([response.status, await readText(response, 100)]).toEqual([201, 'ok'])
      await turn()
    }
    expect(connections).toBe(1)
  })
})

describe('an abort', () => {
  it('passes through as it is, before and during a request', async () => {
    const heard = awaited<void>()
    const { url } = await serve(() => heard.resolve())
    const network = newNetwork()
    await expect(network.fetch(get(url, { signal: AbortSignal.abort(REASON) }))).rejects.toBe(REASON)
    const stop = new AbortController()
    const asked = expect(network.fetch(get(url, { signal: stop.signal }))).rejects.toBe(REASON)
    await heard.promise
    stop.abort(REASON)
    await asked
  })

  it('before there is a connection keeps every byte back', async () => {
    const heard = awaited<void>()
    const bytes: string[] = []
    const closed = awaited<void>()
    const proxy = await serveRaw((socket) => {
      socket.on('data', (chunk) => bytes.push(chunk.toString('latin1')))
      socket.once('data', () => {
        heard.resolve()
        stop.abort(REASON)
        // The connection closes after the client has read this, and has sent what it wants to send.
        setImmediate(() => socket.end('HTTP/1.1 200 Connection Established\r\n\r\n'))
      })
      socket.on('close', () => closed.resolve())
    })
    const stop = new AbortController()
    const network = newNetwork({ env: { HTTP_PROXY: proxy } })
    await expect(network.fetch(post('http://api.test/', undefined, { signal: stop.signal }))).rejects.toBe(
      REASON,
    )
    await closed.promise
    await network.close()
    expect(bytes.join('')).toContain('CONNECT')
    expect(bytes.join('')).not.toContain('POST')
  })
})

it('each address of a host has three seconds', async () => {
  const connect = vi.spyOn(net, 'connect')
  onTestFinished(() => connect.mockRestore())
  const { url } = await serve((_, response) => response.end('here'))
  const response = await newNetwork({ lookup: everyNameIsHere }).fetch(
    get(url.replace('127.0.0.1', 'far.test')),
  )
  expect(await readText(response, 100)).toBe('here')
  expect(connect).toHaveBeenCalledWith(expect.objectContaining({ autoSelectFamilyAttemptTimeout: 3_000 }))
})

describe('a proxy', () => {
  it('carries a request to its end', async () => {
    const { url } = await serve((request, response) => response.end(`for ${request.headers.host}`))
    const proxy = await createProxy({ to: new URL(url).port })
    const response = await newNetwork({ env: { HTTP_PROXY: proxy.url } }).fetch(post('http://api.test/'))
    expect(await readText(response, 100)).toBe('for api.test')
    expect(proxy.asked).toHaveLength(1)
  })

  it.each([
    ['this machine', 'a.localhost', {}],
    ['a host that NO_PROXY names', 'api.test', { NO_PROXY: 'api.test' }],
  ])('is not used for %s', async (_, host, more) => {
    const { url } = await serve((__, response) => response.end('here'))
    const proxy = await createProxy({ refuse: 403 })
    const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url, ...more }
    const network = newNetwork({ env, lookup: everyNameIsHere })
    expect(await readText(await network.fetch(get(url.replace('127.0.0.1', host))), 100)).toBe('here')
    expect(proxy.asked).toEqual([])
  })

  it('fails at once when it closes the connection instead of opening a tunnel', async () => {
    let connections = 0
    const proxy = await serveRaw((socket) => {
      connections++
      socket.once('data', () => socket.end())
    })
    const network = newNetwork({ env: { HTTPS_PROXY: proxy } })
    const error = await failure(network.fetch(post('https://api.test/')))
    expect(error).toMatchObject({
      sent: false,
      message: 'no connection to the proxy (the connection was closed)',
    })
    expect(connections).toBe(1)
  })
})

describe('a connection', () => {
  const exchange = async (network: Network, request: ServerRequest) =>
    readText(await network.fetch(request), 100)

  it.each([
    ['fresh', true, 999, 1],
    ['fresh', true, 1_001, 2],
    ['kept', false, 1_001, 1],
    ['kept', false, 10_001, 2],
  ])('%s (%s) that was idle for %i ms: %i connections', async (_, fresh, idleMs, connections) => {
    const served = await serve((__, response) => response.end('ok'))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const network = newNetwork()
    await exchange(network, get(served.url, { fresh }))
    await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(idleMs)
    await new Promise((resolve) => setImmediate(resolve))
    await exchange(network, get(served.url, { fresh }))
    expect(served.connections()).toBe(connections)
  })

  it('of a poll is not used for a create', async () => {
    const served = await serve((_, response) => response.end('ok'))
    const network = newNetwork()
    await exchange(network, get(served.url))
    await exchange(network, post(served.url))
    expect(served.connections()).toBe(2)
  })
})

interface Proxy {
  readonly url: string
  /** First line of every request. */
  readonly asked: readonly string[]
}

async function createProxy({ refuse = 0, to = '' }: { refuse?: number; to?: string }): Promise<Proxy> {
  const asked: string[] = []
  const server = createHttpServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(403).end()
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    asked.push(`CONNECT ${request.url}`)
    socket.on('error', () => {})
    if (refuse > 0) return void socket.end(`HTTP/1.1 ${refuse} No\r\n\r\n`)
    const onward = connect(Number(to), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    onward.on('error', () => socket.destroy())
  })
  return { url: `http://127.0.0.1:${await listening(server)}`, asked }
}

/** Of localhost; undefined without openssl. */
let certificate: { readonly key: Buffer; readonly cert: Buffer } | undefined
beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const words =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost -keyout'
  try {
    execFileSync('openssl', [...words.split(' '), key, '-out', cert], { stdio: 'ignore' })
    certificate = { key: readFileSync(key), cert: readFileSync(cert) }
  } catch {
    // The test of the certificate is skipped.
  }
  rmSync(folder, { recursive: true, force: true })
})
