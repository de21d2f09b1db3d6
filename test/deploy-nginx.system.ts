/** `deploy/nginx/nginx.conf` in a real nginx, in front of real nodes on one data folder. Skipped where nginx is not installed. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Agent, type Dispatcher, request } from 'undici'
import { beforeAll, describe, expect, test } from 'vitest'
import { randomOutput } from './support/engines.js'
import {
  bash,
  createPlace,
  listen,
  type Place,
  rushes,
  type Service,
  serve,
  start,
  until,
  whenOver,
} from './support/index.js'
import { freePort } from './support/postgres-server.js'
import { read } from './support/project.js'

const nginxPath = ['nginx', '/usr/sbin/nginx'].find((name) => spawnSync(name, ['-v']).status === 0)
const hasNginx = nginxPath !== undefined

const MIB = 1_048_576
const RUNS = '/api/v1/runs'
const PUBLIC_URL = 'https://media.test'
const MODEL = 'rushes/preview-image'

const portIn = (url: string): number => Number(new URL(url).port)
const bodyOf = (reply: Reply) => JSON.parse(reply.body.toString())
const creation = (input: object): string => JSON.stringify({ model: MODEL, input })

describe.skipIf(!hasNginx)('nginx in front of two nodes', () => {
  let place: Place
  let data: string
  let nodes: readonly [Service, Service]
  let nginx: Nginx

  const node = (port = 0) =>
    serve(place, [
      '--data',
      data,
      '--port',
      String(port),
      '--public-url',
      PUBLIC_URL,
      '--trust-proxy',
      '127.0.0.1',
      '--engine',
      `image=${randomOutput('a.png', 20_000_000)}`,
    ])
  const newKey = async (...flags: readonly string[]): Promise<string> => {
    const words = ['admin', 'key', 'create', '--account', 'default', '--rate', '10000/1s', '--data', data]
    return (await rushes(place, [...words, ...flags])).stdout.trim()
  }
  const as = (key: string, headers = {}) => ({ authorization: `Bearer ${key}`, ...headers })
  const create = (key: string, body: string | Uint8Array = creation({ prompt: 'a fox' })) =>
    ask(nginx.port, { method: 'POST', path: RUNS, headers: as(key), body })
  const status = (key: string, id: string) => ask(nginx.port, { path: `${RUNS}/${id}`, headers: as(key) })
  const runs = async (): Promise<number> => {
    const { stdout } = await rushes(place, ['admin', 'account', 'list', '--json', '--data', data])
    return JSON.parse(stdout).runs
  }
  const finishedOutput = async (key: string): Promise<string> => {
    const { id } = bodyOf(await create(key))
    return until('the output', async () => {
      const { output } = bodyOf(await status(key, id))
      return output ? new URL(output.urls[0]).pathname : undefined
    })
  }

  beforeAll(async () => {
    place = createPlace()
    data = join(place.folder, 'data')
    const first = await node()
    nodes = [first, await node()]
    nginx = await startNginx([portIn(nodes[0].url), portIn(nodes[1].url)])
  })

  test('accepts its configuration', () => {
    expect(nginx.checked).toMatchObject({ code: 0, stderr: expect.stringMatching(/test is successful/) })
    expect(nginx.checked.stderr).not.toMatch(/\[(warn|emerg)\]/)
  })

  test('reaches both nodes, also over TLS, and returns public URLs', async () => {
    const key = await newKey()
    const created = await ask(nginx.tlsPort, {
      tls: true,
      method: 'POST',
      path: RUNS,
      headers: as(key),
      body: creation({ prompt: 'a fox' }),
    })
    expect(created.status).toBe(201)
    expect(created.headers.location).toBe(`${PUBLIC_URL}${RUNS}/${bodyOf(created).id}`)
    expect((await ask(nginx.tlsPort, { tls: true, path: '/readyz' })).status).toBe(200)
  })

  test('allows signing in only over TLS, for a session on both nodes', async () => {
    const [, token] = /\/link\/([\w-]+)/.exec(nodes[0].process.printed.stdout) ?? []
    const signIn = (tls: boolean, headers: Readonly<Record<string, string>> = {}) =>
      ask(tls ? nginx.tlsPort : nginx.port, {
        method: 'POST',
        path: '/api/auth/link',
        tls,
        body: JSON.stringify({ token }),
        headers: {
          host: 'runs.test',
          origin: `${tls ? 'https' : 'http'}://runs.test`,
          'content-type': 'application/json',
          ...headers,
        },
      })
    const code = (reply: Reply) => bodyOf(reply).error.code
    const claimed = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.test' }
    expect(code(await signIn(false))).toBe('https_required')
    expect(code(await signIn(false, claimed))).toBe('https_required')
    expect(code(await signIn(true, { origin: 'https://evil.test', ...claimed }))).toBe('foreign_origin')
    const signedIn = await signIn(true)
    const [cookie = ''] = [signedIn.headers['set-cookie']].flat()
    expect([signedIn.status, cookie]).toEqual([
      200,
      expect.stringMatching(/; HttpOnly; Secure; SameSite=Strict$/),
    ])
    const session = { path: '/api/auth/session', tls: true, headers: { cookie: cookie.replace(/;.*/, '') } }
    for (let count = 0; count < 4; count++) expect((await ask(nginx.tlsPort, session)).status).toBe(200)
    const page = await ask(nginx.tlsPort, {
      ...session,
      path: '/sign-in',
      headers: { 'accept-encoding': 'gzip' },
    })
    expect([page.status, page.headers['content-encoding']]).toEqual([200, 'gzip'])
  })

  test('passes the client address on, for the allowed IP addresses of a key, and accepts no forged one', async () => {
    const key = await newKey('--allow-ip', '127.0.0.2')
    const from = (address: string, claimed?: string) =>
      ask(nginx.port, {
        path: `${RUNS}/run_none`,
        from: address,
        headers: as(key, claimed && { 'x-forwarded-for': claimed }),
      })
    expect((await from('127.0.0.2')).status).toBe(404)
    expect((await from('127.0.0.2', '203.0.113.7')).status).toBe(404)
    const refused = await from('127.0.0.3', '127.0.0.2')
    expect(bodyOf(refused).error).toMatchObject({
      code: 'ip_not_allowed',
      message: expect.stringContaining('127.0.0.3'),
    })
  })

  test('passes a body of 60 MiB, and the refusal of a body that the service does not take', async () => {
    const key = await newKey()
    const sent = (bytes: number) =>
      create(key, creation({ prompt: 'x', image_urls: [`data:image/png;base64,${'A'.repeat(bytes)}`] }))
    expect((await sent(60 * MIB)).status).toBe(201)
    const refused = await sent(66 * MIB)
    expect(refused.status).toBe(413)
    expect(bodyOf(refused).error.code).toBe('payload_too_large')
  })

  test('does not mark a node as failed for bodies that it refuses early', async () => {
    const body = Buffer.alloc(8 * MIB)
    const replies = await Promise.all(Array.from({ length: 12 }, () => create('wrong', body)))
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 401))
    expect(nginx.errors()).not.toMatch(/upstream server temporarily disabled|no live upstreams/)
    const key = await newKey()
    for (let at = 0; at < 4; at++) expect((await create(key)).status).toBe(201)
  })

  test('passes outputs with ranges, conditions and lengths', async () => {
    const path = await finishedOutput(await newKey())
    const whole = await ask(nginx.port, { path })
    expect(whole).toMatchObject({ status: 200, headers: { 'content-length': '20000000' } })
    const part = await ask(nginx.port, { path, headers: { range: 'bytes=10000000-10000099' } })
    expect(part).toMatchObject({
      status: 206,
      headers: { 'content-range': 'bytes 10000000-10000099/20000000' },
    })
    expect(part.body.equals(whole.body.subarray(10_000_000, 10_000_100))).toBe(true)
    const { etag = '' } = whole.headers
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
    expect((await ask(nginx.port, { path, headers: { 'if-none-match': String(etag) } })).status).toBe(304)
  })

  test('loses no status request and no create when a node is killed', async () => {
    const key = await newKey()
    const { id } = bodyOf(await create(key))
    const before = await runs()
    const seen: number[] = []
    let created = 0
    const polls = async () => {
      for (let at = 0; at < 60; at++) seen.push((await status(key, id)).status)
    }
    const creates = async () => {
      for (let at = 0; at < 10; at++) created += (await create(key)).status === 201 ? 1 : 0
    }
    const polling = Promise.all([polls(), polls(), polls()])
    await until('some polls', () => seen.length > 20)
    nodes[1].process.kill('SIGKILL')
    await nodes[1].process.ended
    // Nothing listens there now, so nothing can have been sent to it.
    await creates()
    await polling
    expect(seen).toHaveLength(180)
    expect(new Set(seen)).toEqual(new Set([200]))
    expect(created).toBe(10)
    expect((await runs()) - before).toBe(10)
  })
})

describe.skipIf(!hasNginx)('nginx in front of nodes that fail', () => {
  const ending = () => startFakeNode((socket) => socket.destroy())

  test('sends a create only once, but repeats a status request', async () => {
    const [one, two] = [await ending(), await ending()]
    const { port } = await startNginx([one.port, two.port])
    const arrived = () => [...one.requests, ...two.requests].filter((line) => !line.startsWith('GET / '))
    const created = await ask(port, { method: 'POST', path: RUNS, body: creation({ prompt: 'a fox' }) })
    expect(created.status).toBe(502)
    expect(arrived()).toEqual([`POST ${RUNS} HTTP/1.1`])
    expect((await ask(port, { path: `${RUNS}/run_1` })).status).toBe(502)
    expect(arrived().sort()).toEqual([
      `GET ${RUNS}/run_1 HTTP/1.1`,
      `GET ${RUNS}/run_1 HTTP/1.1`,
      `POST ${RUNS} HTTP/1.1`,
    ])
  })

  test('passes on a 503 of a node unchanged, also to a status request', async () => {
    const unready = () =>
      startFakeNode((socket) =>
        socket.end('HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 2\r\n\r\n{}'),
      )
    const [one, two] = [await unready(), await unready()]
    const { port } = await startNginx([one.port, two.port])
    for (let at = 0; at < 5; at++)
      expect(await ask(port, { path: `${RUNS}/run_1` })).toMatchObject({
        status: 503,
        headers: { 'retry-after': '5' },
      })
  })
})

/** Addresses of the nodes in the configuration. */
const NODES = ['127.0.0.1:7878', '127.0.0.1:7879']

interface Nginx {
  readonly port: number
  readonly tlsPort: number
  /** Returns the error log so far. */
  errors(): string
  /** Result of `nginx -t`. */
  readonly checked: { readonly code: number | null; readonly stderr: string }
}

/** Starts nginx. `nodes`: ports of the two nodes. Changes only addresses, ports and paths of the configuration. */
async function startNginx(nodes: readonly [number, number]): Promise<Nginx> {
  const place = createPlace()
  const folder = place.folder
  const [port, tlsPort] = [await freePort(), await freePort()]
  const tls = join(folder, 'tls')
  mkdirSync(tls)
  await bash(
    place,
    `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -keyout ${tls}/tls.key -out ${tls}/tls.crt`,
  )
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const [file, errors] = [join(folder, 'nginx.conf'), join(folder, 'errors.log')]
  const replaced: readonly (readonly [string, string])[] = [
    ...NODES.map((address, at) => [address, `127.0.0.1:${nodes[at]}`] as const),
    ['listen 8080;', `listen 127.0.0.1:${port};`],
    ['listen 8443 ssl;', `listen 127.0.0.1:${tlsPort} ssl;`],
    ['/etc/nginx/tls', tls],
    ['/tmp/nginx.pid', join(folder, 'nginx.pid')],
    ['/var/log/nginx/error.log', errors],
    ['worker_processes auto', 'worker_processes 1'],
    // Needed by users without write access to the folders of the nginx package.
    ['access_log off;', `access_log off; ${temporary.join(' ')}`],
  ]
  let text = read('deploy/nginx/nginx.conf')
  for (const [from, to] of replaced) {
    if (!text.includes(from)) throw new Error(`nginx.conf does not contain ${from}`)
    text = text.replaceAll(from, to)
  }
  writeFileSync(file, text)
  const words = ['-p', folder, '-c', file, '-g', 'daemon off;']
  const command = nginxPath ?? 'nginx'
  const checked = await start(place, ['-t', ...words], { command, stdin: 'ignore' }).ended
  // Ends after ten minutes, in case the test process was killed.
  const limited = ['--signal=TERM', '600', command, ...words]
  const running = start(place, limited, { command: 'timeout', stdin: 'ignore' })
  // Uses SIGTERM: after SIGKILL, the worker processes would continue.
  whenOver(() => {
    running.kill('SIGTERM')
    return running.ended
  })
  const ended = running.ended.then(({ stderr }) => Promise.reject(new Error(`nginx ended: ${stderr}`)))
  const answers = () =>
    ask(port, { path: '/' }).then(
      () => true,
      () => undefined,
    )
  await Promise.race([ended, until('nginx', answers)])
  ended.catch(() => {})
  return { port, tlsPort, errors: () => readFileSync(errors, 'utf8'), checked }
}

/** Starts a node that handles the first bytes of every connection with this function. `requests`: the first line of each. */
async function startFakeNode(answer: (socket: Socket) => void) {
  const requests: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      requests.push(bytes.toString('latin1').split('\r\n')[0] ?? '')
      answer(socket)
    })
  })
  return { port: await listen(server), requests }
}

interface Asked {
  readonly path: string
  readonly method?: Dispatcher.HttpMethod
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** Source address of the request. */
  readonly from?: string
  readonly tls?: boolean
}

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Sends one request on a new connection. Does not follow redirects. */
async function ask(port: number, { path, from, tls = false, ...options }: Asked): Promise<Reply> {
  const dispatcher = new Agent({
    connect: { rejectUnauthorized: false },
    ...(from !== undefined && { localAddress: from }),
  })
  try {
    const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}${path}`
    const { statusCode, headers, body } = await request(url, { ...options, dispatcher })
    return { status: statusCode, headers, body: Buffer.from(await body.arrayBuffer()) }
  } finally {
    await dispatcher.destroy()
  }
}
