/** The real network on loopback: what was certainly not sent, what may have been, and which way it goes. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import net, { connect, createServer as createNetServer, type LookupFunction, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { GRACE_AFTER_SUSPENSION_MS, SILENCE_TIMEOUT_MS } from '../../src/host/exchange.js'
import { HttpFailure, type ServerRequest } from '../../src/host/http.js'
import { readText } from '../../src/host/response-body.js'
import type { Network, NetworkOptions } from '../../src/host/undici.js'
import {
  createGate,
  createManualClock,
  listen,
  openNetwork,
  rejection,
  temporaryFolder,
  until,
} from '../support/index.js'

const KEY = 'sk-never-seen-anywhere'
const REASON = new Error('the caller’s own')
const MIB = 1_048_576

const serve = async (listener: RequestListener) => {
  const server = createHttpServer({ keepAliveTimeout: 60_000 }, listener)
  let connections = 0
  server.on('connection', () => connections++)
  return { url: `http://127.0.0.1:${await listen(server)}/`, connections: () => connections }
}

/** A server of bytes, for answers that no HTTP server would give. */
const serveRaw = async (onConnection: (socket: Socket) => void): Promise<string> => {
  const server = createNetServer((socket) => {
    socket.on('error', () => {})
    onConnection(socket)
  })
  return `http://127.0.0.1:${await listen(server)}/`
}

const get = (url: string, more: Partial<ServerRequest> = {}): ServerRequest => ({
  method: 'GET',
  url: new URL(url),
  headers: { authorization: `Bearer ${KEY}` },
  ...more,
})
const post = (url: string, more: Partial<ServerRequest> = {}): ServerRequest =>
  get(url, { method: 'POST', body: Buffer.from('{}'), fresh: true, ...more })

async function failure(promise: Promise<unknown>): Promise<HttpFailure> {
  const error = await rejection(promise)
  if (!(error instanceof HttpFailure)) throw error
  expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toContain(KEY)
  return error
}

const everyNameIsHere: LookupFunction = (_, options, found) =>
  options.all ? found(null, [{ address: '127.0.0.1', family: 4 }]) : found(null, '127.0.0.1', 4)

const noNameIsFound: LookupFunction = (hostname, _, found) =>
  found(Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' }), '', 0)

/** Turns of the event loop, in which sockets are read. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('an exchange brings the status, the headers in any case, and the body', async () => {
  const { url } = await serve((request, response) => {
    response.writeHead(418, { 'Retry-After': '3', 'set-cookie': ['a=1', 'b=2'] })
    response.end(`${request.method} ${request.url}`)
  })
  const response = await openNetwork().fetch(get(`${url}a%2Fb?c`))
  const headers = ['RETRY-AFTER', 'Set-Cookie', 'location'].map((name) => response.header(name))
  expect([response.status, ...headers]).toEqual([418, '3', 'a=1, b=2', undefined])
  expect(await readText(response, 1_000)).toBe('GET /a%2Fb?c')
})

it.each([0, 1_000_000])('an exchange sends a body of %i bytes, with its length', async (size) => {
  const body = Buffer.alloc(size, 'abcdefg')
  const { url } = await serve(async (request, response) => {
    const whole = Buffer.concat(await request.toArray()).equals(body)
    response.end(`${whole} ${request.headers['content-length']} ${request.headers['transfer-encoding']}`)
  })
  expect(await readText(await openNetwork().fetch(post(url, { body })), 1_000)).toBe(`true ${size} undefined`)
})

it('an exchange hears a refusal that comes before the body is read', async () => {
  const { url } = await serve((_, response) => response.writeHead(413).end('too large'))
  const response = await openNetwork().fetch(post(url, { body: Buffer.alloc(200_000) }))
  expect([response.status, await readText(response, 1_000)]).toEqual([413, 'too large'])
})

describe('certainly not sent', () => {
  const lookup = noNameIsFound
  it.each<[string, string, Partial<NetworkOptions>, object]>([
    [
      'a refused connection, at each address of the name',
      'http://localhost:1/',
      {},
      { code: 'ECONNREFUSED', message: 'the connection was refused' },
    ],
    [
      'a name that is not found',
      'http://nowhere.invalid/',
      { lookup },
      { code: 'ENOTFOUND', message: 'the host name was not found' },
    ],
    [
      'a proxy that refuses connections',
      'https://api.test/',
      { env: { HTTPS_PROXY: 'http://127.0.0.1:1' } },
      { message: 'no connection to the proxy' },
    ],
  ])('%s', async (_, url, options, expected) => {
    expect(await failure(openNetwork(options).fetch(post(url)))).toMatchObject({ sent: false, ...expected })
  })

  it('a certificate that nobody trusts', async ({ skip }) => {
    const certificate = createCertificate() ?? skip('no openssl')
    let requests = 0
    const port = await listen(createHttpsServer(certificate, () => requests++))
    const error = await failure(openNetwork().fetch(post(`https://localhost:${port}/`)))
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
    const error = await failure(openNetwork().fetch(post(url.replace('http:', 'https:'))))
    expect(error).toMatchObject({ sent: false, message: 'the server does not use TLS' })
  })

  it.each([
    ['https://api.test/', 403],
    ['http://api.test/', 407],
  ])('a proxy that opens no tunnel to %s: %i', async (url, refuse) => {
    const proxy = await createProxy({ refuse })
    const network = openNetwork({ env: { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url } })
    expect(await failure(network.fetch(post(url)))).toMatchObject({
      sent: false,
      message: expect.stringContaining(`Proxy response (${refuse})`),
    })
    expect(proxy.asked).toEqual([`CONNECT api.test${url.startsWith('https') ? ':443' : ':80'}`])
  })
})

const INVALID = { isInvalidHttp: true, message: 'the response is not valid HTTP' }
it.each<[string, (socket: Socket) => void, Partial<HttpFailure>, bodyBytes?: number]>([
  ['a connection that is reset amid the body', (socket) => socket.resetAndDestroy(), {}, 5_000_000],
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
])('perhaps sent: %s', async (_, answer, expected, bodyBytes = 2) => {
  const url = await serveRaw((socket) => socket.once('data', () => answer(socket)))
  const request = post(url, { body: Buffer.alloc(bodyBytes) })
  expect(await failure(openNetwork().fetch(request))).toMatchObject({ sent: true, ...expected })
})

it.each([
  ['by length', 'Content-Length: 100\r\n\r\n{"id":"run_1"'],
  ['by chunks', 'Transfer-Encoding: chunked\r\n\r\nd\r\n{"id":"run_1"\r\n'],
])(
  'perhaps sent: a body that is cut %s is read as far as it arrived, however late, and then fails',
  async (_, rest) => {
    const closed = createGate()
    const url = await serveRaw((socket) => {
      socket.on('close', () => closed.open())
      socket.once('data', () => socket.end(`HTTP/1.1 201 Created\r\nLocation: /r1\r\n${rest}`))
    })
    const response = await openNetwork().fetch(post(url))
    expect([response.status, response.header('location')]).toEqual([201, '/r1'])
    await closed.after
    await turns(5)
    let text = ''
    const read = async () => {
      for await (const chunk of response.body) text += Buffer.from(chunk).toString()
    }
    expect((await failure(read())).sent).toBe(true)
    expect(text).toBe('{"id":"run_1"')
  },
)

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

const SIZES = Array.from({ length: 11 }, (_, at) => 200_000 + at * 74_234)

/** What comes of an answer that is taken slowly. */
async function taken(size: number, framing: string, ending: 'FIN' | 'RST'): Promise<string> {
  const isChunked = framing === 'chunks'
  const headers = {
    connection: 'close',
    ...(framing === 'a length' && { 'content-length': size }),
    ...(isChunked && { 'transfer-encoding': 'chunked' }),
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const url = await serveRaw((socket) => {
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\n${head.join('')}\r\n${isChunked ? `${size.toString(16)}\r\n` : ''}`)
      socket.write(Buffer.alloc(size, 'a'))
      const last = isChunked ? '\r\n0\r\n\r\n' : ''
      if (ending === 'FIN') socket.end(last)
      else socket.write(last, () => setTimeout(() => socket.resetAndDestroy(), 5))
    })
  })
  let bytes = 0
  try {
    for await (const chunk of (await openNetwork().fetch(get(url))).body) {
      bytes += chunk.byteLength
      await turns(5)
    }
  } catch (error) {
    if (error instanceof HttpFailure) return 'a failure'
    throw error
  }
  return bytes === size ? 'whole' : `${bytes} of ${size} bytes`
}

it.each<[title: string, framing: string, ending: 'FIN' | 'RST', outcome: RegExp]>([
  ['with a length is whole, however slowly it is taken', 'a length', 'FIN', /^whole$/],
  ['with chunks is whole, however slowly it is taken', 'chunks', 'FIN', /^whole$/],
  ['with neither is whole, however slowly it is taken', 'neither', 'FIN', /^whole$/],
  ['and breaks is whole with chunks, or a failure', 'chunks', 'RST', /^(whole|a failure)$/],
  ['and breaks is no answer where only its end tells the length', 'neither', 'RST', /^a failure$/],
])('a connection that ends with its answer %s', async (_, framing, ending, outcome) => {
  for (const size of SIZES) expect(await taken(size, framing, ending)).toMatch(outcome)
})

describe('60 s of silence', () => {
  it.each([
    ['before the head end the request: perhaps sent', false, false],
    ['of a proxy that never answers CONNECT end the request: certainly not sent', true, false],
    ['of a proxy that never answers CONNECT end the request, also to a slow server', true, true],
  ])('%s', async (_, isProxy, isSlow) => {
    const clock = createManualClock()
    const heard = createGate()
    const silent = await serveRaw((socket) => socket.once('data', () => heard.open()))
    const network = openNetwork({ clock, env: isProxy ? { HTTPS_PROXY: silent } : {} })
    const failed = failure(network.fetch(post(isProxy ? 'https://api.test/' : silent, { isSlow })))
    await heard.after
    await clock.advance(SILENCE_TIMEOUT_MS)
    expect(await failed).toMatchObject({ sent: !isProxy, message: 'no response for 60 s' })
  })

  it('do not count before the head of a slow server, but amid its body', async () => {
    const clock = createManualClock()
    const heard = createGate<ServerResponse>()
    const { url } = await serve((_, response) => heard.open(response))
    const asked = openNetwork({ clock }).fetch(post(url, { isSlow: true }))
    const server = await heard.after
    await clock.advance(SILENCE_TIMEOUT_MS * 30)
    server.writeHead(200, { 'content-length': '100' }).write('a')
    const failed = failure(readText(await asked, 100))
    await until('the alarm of the body', () => clock.alarms.length > 0)
    await clock.advance(SILENCE_TIMEOUT_MS)
    expect(await failed).toMatchObject({ message: 'no response for 60 s' })
  })

  it('amid a body end the reading, and every chunk winds the alarm up again', async () => {
    const clock = createManualClock()
    const chunks = ['a', 'b', 'c']
    const served = createGate<() => void>()
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      const write = () => response.write(chunks.shift() ?? '')
      write()
      served.open(write)
    })
    const response = await openNetwork({ clock }).fetch(get(url))
    const write = await served.after
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
    const response = await openNetwork({ clock }).fetch(get(url))
    await until('no alarm', () => clock.alarms.length === 0)
    await clock.advance(SILENCE_TIMEOUT_MS * 2)
    let bytes = 0
    for await (const chunk of response.body) bytes += chunk.byteLength
    expect(bytes).toBe(size)
    expect(clock.alarms).toEqual([])
  })

  it.each([true, false])('leave 10 s more for the response after a suspension: %s', async (isAnswered) => {
    const clock = suspendedClock()
    const heard = createGate<() => void>()
    const { url } = await serve((_, response) => heard.open(() => response.end('late')))
    const asked = openNetwork({ clock }).fetch(post(url))
    const failed = isAnswered ? undefined : failure(asked)
    const answer = await heard.after
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
      const { fetch } = openNetwork({ clock })
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

it('a response that is discarded ends its connection', async () => {
  const closed = createGate()
  const { url } = await serve((request, response) => {
    request.socket.on('close', () => closed.open())
    response.writeHead(200, { 'content-length': '100' }).write('a')
  })
  const response = await openNetwork().fetch(get(url))
  response.discard()
  await closed.after
})

/** Sends the pieces one at a time, so that each is read by itself. */
async function writeApart(socket: Duplex, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece)
    await turns(2)
  }
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const WITH_HEADERS = 'HTTP/1.1 100 Go on\r\nDate: today\r\nContent-Length: 5\r\n\r\n'
const CREATED = 'HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok'

it.each([
  ['before the answer', [CONTINUE, CREATED]],
  ['byte by byte', [...WITH_HEADERS, ...CREATED]],
])('a 100 Continue that nobody asked for is skipped, and the connection is kept: %s', async (_, pieces) => {
  let connections = 0
  const url = await serveRaw((socket) => {
    connections++
    socket.on('data', () => void writeApart(socket, pieces))
  })
  const network = openNetwork()
  for (const request of [post(url), post(url), get(url, { fresh: true })]) {
    const response = await network.fetch(request)
    expect([response.status, await readText(response, 100)]).toEqual([201, 'ok'])
    await turns(1)
  }
  expect(connections).toBe(1)
})

it('an abort passes through as it is, before and during a request', async () => {
  const heard = createGate()
  const { url } = await serve(() => heard.open())
  const network = openNetwork()
  await expect(network.fetch(get(url, { signal: AbortSignal.abort(REASON) }))).rejects.toBe(REASON)
  const stop = new AbortController()
  const asked = expect(network.fetch(get(url, { signal: stop.signal }))).rejects.toBe(REASON)
  await heard.after
  stop.abort(REASON)
  await asked
})

it('an abort before there is a connection keeps every byte back', async () => {
  const heard = createGate()
  const bytes: string[] = []
  const closed = createGate()
  const proxy = await serveRaw((socket) => {
    socket.on('data', (chunk) => bytes.push(chunk.toString('latin1')))
    socket.once('data', () => {
      heard.open()
      stop.abort(REASON)
      // The connection closes after the client has read this, and has sent what it wants to send.
      setImmediate(() => socket.end('HTTP/1.1 200 Connection Established\r\n\r\n'))
    })
    socket.on('close', () => closed.open())
  })
  const stop = new AbortController()
  const network = openNetwork({ env: { HTTP_PROXY: proxy } })
  await expect(network.fetch(post('http://api.test/', { signal: stop.signal }))).rejects.toBe(REASON)
  await closed.after
  await network.close()
  expect(bytes.join('')).toContain('CONNECT')
  expect(bytes.join('')).not.toContain('POST')
})

it('each address of a host has three seconds', async () => {
  const connect = vi.spyOn(net, 'connect')
  onTestFinished(() => connect.mockRestore())
  const { url } = await serve((_, response) => response.end('here'))
  const response = await openNetwork({ lookup: everyNameIsHere }).fetch(
    get(url.replace('127.0.0.1', 'far.test')),
  )
  expect(await readText(response, 100)).toBe('here')
  expect(connect).toHaveBeenCalledWith(expect.objectContaining({ autoSelectFamilyAttemptTimeout: 3_000 }))
})

it('a proxy carries a request to its end', async () => {
  const { url } = await serve((request, response) => response.end(`for ${request.headers.host}`))
  const proxy = await createProxy({ to: new URL(url).port })
  const response = await openNetwork({ env: { HTTP_PROXY: proxy.url } }).fetch(post('http://api.test/'))
  expect(await readText(response, 100)).toBe('for api.test')
  expect(proxy.asked).toHaveLength(1)
})

it.each([
  ['this machine', 'a.localhost', {}],
  ['a host that NO_PROXY names', 'api.test', { NO_PROXY: 'api.test' }],
])('a proxy is not used for %s', async (_, host, more) => {
  const { url } = await serve((__, response) => response.end('here'))
  const proxy = await createProxy({ refuse: 403 })
  const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url, ...more }
  const network = openNetwork({ env, lookup: everyNameIsHere })
  expect(await readText(await network.fetch(get(url.replace('127.0.0.1', host))), 100)).toBe('here')
  expect(proxy.asked).toEqual([])
})

it('a proxy fails at once when it closes the connection instead of opening a tunnel', async () => {
  let connections = 0
  const proxy = await serveRaw((socket) => {
    connections++
    socket.once('data', () => socket.end())
  })
  const network = openNetwork({ env: { HTTPS_PROXY: proxy } })
  const error = await failure(network.fetch(post('https://api.test/')))
  expect(error).toMatchObject({
    sent: false,
    message: 'no connection to the proxy',
  })
  expect(connections).toBe(1)
})

const exchange = async (network: Network, request: ServerRequest) =>
  readText(await network.fetch(request), 100)

it.each([
  ['fresh', true, 999, 1],
  ['fresh', true, 1_001, 2],
  ['kept', false, 1_001, 1],
  ['kept', false, 10_001, 2],
])('a connection %s (%s) that was idle for %i ms: %i connections', async (_, fresh, idleMs, connections) => {
  const served = await serve((__, response) => response.end('ok'))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const network = openNetwork()
  await exchange(network, get(served.url, { fresh }))
  await turns(1)
  vi.advanceTimersByTime(idleMs)
  await turns(1)
  await exchange(network, get(served.url, { fresh }))
  expect(served.connections()).toBe(connections)
})

it('a connection of a poll is not used for a create', async () => {
  const served = await serve((_, response) => response.end('ok'))
  const network = openNetwork()
  await exchange(network, get(served.url))
  await exchange(network, post(served.url))
  expect(served.connections()).toBe(2)
})

/** `asked`: the first line of every request. */
async function createProxy({ refuse = 0, to = '' }: { refuse?: number; to?: string }) {
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
  return { url: `http://127.0.0.1:${await listen(server)}`, asked }
}

/** Of localhost. Undefined without openssl. */
function createCertificate(): { readonly key: Buffer; readonly cert: Buffer } | undefined {
  const folder = temporaryFolder()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const words =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost -keyout'
  try {
    execFileSync('openssl', [...words.split(' '), key, '-out', cert], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  return { key: readFileSync(key), cert: readFileSync(cert) }
}
