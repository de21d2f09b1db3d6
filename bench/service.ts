/**
 * What the local service answers a second: `npm run bench:service`. Creates and status calls, beside a bare Fastify
 * route that parses and answers JSON, on the same machine in the same run; then creates while a film is rendered.
 * The servers are processes of their own; the load is spoken over raw sockets, since a real client costs more than
 * most answers. Every key has its limit of 20 requests in 10 s, so there are many keys. Prints Markdown tables.
 * `npm run bench:service -- film` measures the creates beside a film alone, `-- postgres` creates and status calls with 64
 * connections, one account each, on a PostgreSQL of this machine.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fastify } from 'fastify'
import { newKey } from '../src/service/secrets.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openServiceDatabase, openSqliteStore } from '../src/service/store/sqlite/index.js'
import { startPostgres } from '../test/support/postgres-server.js'
import {
  best,
  cellsOf,
  createText,
  dial,
  expectStatus,
  type Figures,
  figuresOf,
  flood as floodPort,
  type Line,
  RUN,
  started,
  statusText,
} from './load.js'
import { row } from './table.js'

const SECONDS = 4
const ROUNDS = 3
/** `npm run bench:service -- 100`: with a hundred connections. */
const CONNECTIONS = Number(process.argv[2]) || 16
const KEYS = 24_000
const ACCOUNTS = 64
const KEYS_OF_ACCOUNT = 80
const STEADY_PER_SECOND = 50
const STEADY_SECONDS = 20
const FILM_BODY = JSON.stringify({
  model: 'rushes/preview-video',
  input: { prompt: 'a fox runs', resolution: '1080p', duration: '10' },
})

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

const flood = (
  port: number,
  status: number,
  next: () => string,
  connections = CONNECTIONS,
): Promise<Figures> => floodPort({ port, connections, status, next, seconds: SECONDS })

/** At a steady rate, whatever becomes of the answers, while `going` says so. */
async function steady(port: number, next: () => string, going: () => boolean): Promise<Figures> {
  const idle: Line[] = await Promise.all(Array.from({ length: CONNECTIONS }, () => dial(port)))
  const ms: number[] = []
  const asked: Promise<void>[] = []
  const began = performance.now()
  while (going()) {
    const line = idle.pop() ?? (await dial(port))
    asked.push(
      line.ask(next()).then((answer) => {
        expectStatus(201, answer)
        ms.push(answer.ms)
        idle.push(line)
      }),
    )
    await new Promise((resolve) => setTimeout(resolve, 1_000 / STEADY_PER_SECOND))
  }
  await Promise.all(asked)
  for (const line of idle) line.end()
  return figuresOf(ms, performance.now() - began)
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
  if (process.argv[2] === 'film') {
    await whileRendering(serve, idle, env)
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
      const figures = await flood(server.port, status, next)
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
  await whileRendering(serve, idle, env)
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
      found.push(await flood(service.port, status, text, ACCOUNTS))
    row(name, ...cellsOf(best(found.slice(1))))
  }
  await service.end()
  await postgres.stop()
}

/**
 * Creates of pictures while one film of 1080p is rendered: the film is the only thing that fits. Before, the same while
 * nothing is rendered: a disk or a machine that is busy otherwise delays both.
 */
async function whileRendering(
  serve: readonly string[],
  idle: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  console.log(`\n${STEADY_PER_SECOND} creates a second:\n`)
  row('', 'a second', 'p50 ms', 'p99 ms', '')
  row('---', '--:', '--:', '--:', '--:')
  // A data folder for each: in the other the queue is full of pictures, which would be rendered first.
  const begin = async (name: string, engines: readonly string[]) => {
    const data = join(env.HOME ?? '', name)
    const [own = '', ...keys] = await keysIn(data)
    const service = await started([...serve.with(serve.indexOf('--data') + 1, data), ...engines], env)
    let turn = 0
    const next = () => createText(keys[turn++ % keys.length] ?? '')
    return { own, service, creates: (going: () => boolean) => steady(service.port, next, going) }
  }

  const still = await begin('still', idle)
  const endAt = performance.now() + STEADY_SECONDS * 1_000
  row('while nothing is rendered', ...cellsOf(await still.creates(() => performance.now() < endAt)), '')
  await still.service.end()

  const { own, service, creates } = await begin('film', [])
  // Each on a connection of its own: the one before may not be answered yet.
  const ask = async (text: string) => {
    const line = await dial(service.port)
    const { body } = await line.ask(text)
    line.end()
    return JSON.parse(body)
  }
  const { id } = await ask(createText(own, FILM_BODY))
  let status = 'queued'
  const watch = setInterval(async () => {
    status = (await ask(statusText(own, id))).status ?? status
  }, 1_000)
  while (status === 'queued') await new Promise((resolve) => setTimeout(resolve, 50))
  const figures = await creates(() => status === 'processing')
  clearInterval(watch)
  row('while a film of 1080p is rendered', ...cellsOf(figures), `the film: ${status}`)
  await service.end()
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
