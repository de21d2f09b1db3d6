/**
 * What the local service answers a second: `npm run bench -- service`. Creates and status calls, beside a bare Fastify
 * route that parses and answers JSON, on the same machine in the same run.
 * The servers are processes of their own; the load is spoken over raw sockets, since a real client costs more than
 * most answers. Every key has its limit of 20 requests in 10 s, so there are many keys. Prints Markdown tables.
 * `npm run bench -- service postgres` measures creates and status calls with 64 connections, one account each, on a PostgreSQL of
 * this machine.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fastify } from 'fastify'
import { newKey } from '../src/service/rules/secrets.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openServiceDatabase, openSqliteStore } from '../src/service/store/sqlite/index.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { quantile, row } from './table.js'

const SECONDS = 4
const ROUNDS = 3
/** `npm run bench -- service 100`: with a hundred connections. */
const CONNECTIONS = Number(process.argv[2]) || 16
const KEYS = 24_000
const ACCOUNTS = 64
const KEYS_OF_ACCOUNT = 80
const RUN = {
  id: 'run_01234567890123456789',
  model: 'rushes/preview-image',
  status: 'queued',
  input: { prompt: 'a red fox in fresh snow, dawn, long shadows', quality: 'high' },
  output: null,
  error: null,
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: null,
  finished_at: null,
}
const CREATE_BODY = JSON.stringify({ model: RUN.model, input: RUN.input })
interface Server {
  readonly port: number
  end(): Promise<void>
}

async function started(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<Server> {
  const child: ChildProcess = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = child.stdout === null ? [''] : await once(child.stdout, 'data')
  const { url } = JSON.parse(String(line))
  return {
    port: Number(new URL(url).port),
    async end() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

const bearer = (key: string): string => `Authorization: Bearer ${key}\r\n`
const createText = (key: string): string =>
  `POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n${bearer(key)}Content-Type: application/json\r\n` +
  `Content-Length: ${Buffer.byteLength(CREATE_BODY)}\r\n\r\n${CREATE_BODY}`
const statusText = (key: string, id: string): string =>
  `GET /api/v1/runs/${id} HTTP/1.1\r\nHost: localhost\r\n${bearer(key)}\r\n`

interface Line {
  /** Sends one request; the status, the body and how long they took. */
  ask(text: string): Promise<{ readonly status: number; readonly body: string; readonly ms: number }>
  end(): void
}

async function dial(port: number): Promise<Line> {
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let heard = ''
  let answered: () => void = () => {}
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    heard += text
    const head = heard.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(heard)?.[1])
    if (heard.length >= head + 4 + length) answered()
  })
  return {
    ask: (text) =>
      new Promise((resolve) => {
        const began = performance.now()
        answered = () => {
          const ms = performance.now() - began
          const [status, body] = [Number(heard.slice(9, 12)), heard.slice(heard.indexOf('\r\n\r\n') + 4)]
          heard = ''
          resolve({ status, body, ms })
        }
        socket.write(text)
      }),
    end: () => void socket.destroy(),
  }
}

interface Figures {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

function figuresOf(ms: readonly number[], elapsedMs: number): Figures {
  const perSecond = (ms.length / elapsedMs) * 1_000
  return { perSecond, p50: quantile(ms, 0.5), p99: quantile(ms, 0.99) }
}

function expectStatus(wanted: number, { status, body }: { status: number; body: string }): void {
  if (status !== wanted) throw new Error(`answered ${status}: ${body}`)
}

interface Flood {
  readonly port: number
  readonly connections: number
  /** That every answer must have. */
  readonly status: number
  next(): string
}

/** As fast as it goes: every connection asks again as soon as it was answered. */
async function flood({ port, connections, status, next }: Flood): Promise<Figures> {
  const lines = await Promise.all(Array.from({ length: connections }, () => dial(port)))
  const ms: number[] = []
  const began = performance.now()
  const endAt = began + SECONDS * 1_000
  await Promise.all(
    lines.map(async (line) => {
      while (performance.now() < endAt) {
        const answer = await line.ask(next())
        expectStatus(status, answer)
        ms.push(answer.ms)
      }
      line.end()
    }),
  )
  return figuresOf(ms, performance.now() - began)
}

const cellsOf = ({ perSecond, p50, p99 }: Figures): readonly string[] => [
  perSecond.toFixed(0),
  p50.toFixed(2),
  p99.toFixed(2),
]
const best = (figures: readonly Figures[]): Figures =>
  figures.reduce((one, other) => (other.perSecond > one.perSecond ? other : one))

/** The yardstick: what Fastify itself makes of such requests, with nothing behind it. */
async function beBare(): Promise<void> {
  const app = fastify()
  app.post('/api/v1/runs', async (request, reply) => {
    reply.code(201)
    return { ...RUN, input: (request.body as { input: object }).input }
  })
  app.get('/api/v1/runs/:id', async (request) => ({ ...RUN, id: (request.params as { id: string }).id }))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  process.stdout.write(`${JSON.stringify({ url })}\n`)
}

const keysIn = (data: string) => addKeys(join(data, 'service.db'))

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  const data = join(folder, 'data')
  const env = { PATH: process.env.PATH, HOME: folder }
  const serve = [
    resolve('bin/rushes.cjs'),
    ...'serve --port 0 --json --concurrency 1'.split(' '),
    '--data',
    data,
  ]
  // Nothing is drawn while the answers alone are measured.
  const idle = ['--engine', 'image=sleep 600', '--engine', 'video=sleep 600']
  if (process.argv[2] === 'postgres') {
    await onPostgres([...serve, ...idle], env)
    return rmSync(folder, { recursive: true, force: true })
  }
  const keys = await keysIn(data)
  const service = await started([...serve, ...idle], env)
  const bare = await started([fileURLToPath(import.meta.url), 'bare'], env)
  let turn = 0
  const key = () => keys[turn++ % keys.length] ?? ''

  const line = await dial(service.port)
  const { body } = await line.ask(createText(key()))
  line.end()
  const { id } = JSON.parse(body)
  // All keys are of one account, so each may see that run.
  const measures = [
    ['status, bare Fastify', bare, 200, () => statusText(key(), id)],
    ['status', service, 200, () => statusText(key(), id)],
    ['create, bare Fastify', bare, 201, () => createText(key())],
    ['create', service, 201, () => createText(key())],
  ] as const
  const found = new Map<string, Figures[]>(measures.map(([name]) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, server, status, next] of measures) {
      const figures = await flood({ port: server.port, connections: CONNECTIONS, status, next })
      // The first round warms the machine code.
      if (round > 0) found.get(name)?.push(figures)
    }
  row('', 'a second', 'p50 ms', 'p99 ms', 'of bare Fastify')
  row('---', '--:', '--:', '--:', '--:')
  for (const [name, figures] of found) {
    const yardstick = found.get(`${name}, bare Fastify`)
    const share = yardstick && best(figures).perSecond / best(yardstick).perSecond
    row(name, ...cellsOf(best(figures)), share === undefined ? '' : share.toFixed(2))
  }
  await bare.end()
  await service.end()
  rmSync(folder, { recursive: true, force: true })
}

/** Creates and status calls with one connection for each of many accounts. */
async function onPostgres(serve: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const postgres = await startPostgres()
  const url = await postgres.createDatabase()
  const store = await openPostgresStore(url)
  const nowMs = Date.now()
  const accounts: { readonly keys: readonly string[]; id: string }[] = []
  for (let n = 0; n < ACCOUNTS; n++) {
    const accountId = await store.ensureAccount({ name: `account-${n}`, credits: 1_000_000_000, nowMs })
    const keys = Array.from({ length: KEYS_OF_ACCOUNT }, newKey)
    for (const { hash, prefix } of keys) await store.addKey({ accountId, name: 'bench', nowMs, hash, prefix })
    accounts.push({ keys: keys.map(({ apiKey }) => apiKey), id: '' })
  }
  await store.close()
  const service = await started([...serve, '--database', url], env)
  const line = await dial(service.port)
  for (const account of accounts) {
    const { body } = await line.ask(createText(account.keys[0] ?? ''))
    account.id = JSON.parse(body).id
  }
  line.end()
  let turn = 0
  const next = (textOf: (key: string, id: string) => string) => () => {
    const { keys, id } = accounts[turn % ACCOUNTS] ?? { keys: [], id: '' }
    return textOf(keys[Math.floor(turn++ / ACCOUNTS) % KEYS_OF_ACCOUNT] ?? '', id)
  }
  row('PostgreSQL, 64 accounts', 'a second', 'p50 ms', 'p99 ms')
  row('---', '--:', '--:', '--:')
  const measures = [
    ['status', 200, next(statusText)],
    ['create', 201, next((key) => createText(key))],
  ] as const
  for (const [name, status, text] of measures) {
    const found: Figures[] = []
    for (let round = 0; round <= ROUNDS; round++)
      found.push(await flood({ port: service.port, connections: ACCOUNTS, status, next: text }))
    row(name, ...cellsOf(best(found.slice(1))))
  }
  await service.end()
  await postgres.stop()
}

if (process.argv[2] === 'bare') await beBare()
else await main()

/**
 * Keys for a load: each may send 20 requests in 10 s, so there are many of one account, more than it can have in use.
 * Added before
 * the first start of the service, which then makes no key itself.
 */
async function addKeys(path: string): Promise<readonly string[]> {
  const store = openSqliteStore(path)
  const nowMs = Date.now()
  const accountId = await store.ensureAccount({ name: 'default', credits: 1_000_000_000, nowMs })
  const keys = Array.from({ length: KEYS }, newKey)
  const terms = { accountId, name: 'bench', nowMs, disabled: true }
  for (const { hash, prefix } of keys) await store.addKey({ ...terms, hash, prefix })
  await store.close()
  const database = openServiceDatabase(path)
  database.run('UPDATE keys SET disabled = 0')
  database.close()
  return keys.map(({ apiKey }) => apiKey)
}
