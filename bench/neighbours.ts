/**
 * What one account does to another: `npm run bench:neighbours`. The status requests of a quiet account, alone and while
 * another account lists, searches, downloads and creates as much as its limits allow, on SQLite and on a PostgreSQL of this
 * machine. Prints Markdown tables. The load shares the cores of the service. `sqlite` or `postgres` as first word measures one
 * of them, a second one the loads whose name has it. Needs a build.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { hashOfKey, newKey, newSecret } from '../src/service/secrets.js'
import type { NewRun, Store } from '../src/service/store/contract.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openServiceDatabase, storeOf } from '../src/service/store/sqlite/index.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { dial, expectStatus, started, statusText } from './load.js'
import { quantile, row } from './table.js'

const SECONDS = 6
/** Of a status request without an answer. */
const MAX_WAIT_MS = 30_000
const RUNS = 50_000
const LARGE_RUNS = 120
const CREATES = 110
const MANY_KEYS = 2_000
const CLIENT_KEYS = 200
const IDS = 100

/** As JSON about 0.8 MB: six bytes for each character. */
const LARGE_INPUT = {
  prompt: '\u0001'.repeat(100_000),
  notes: '\u0001'.repeat(10_000),
  image_urls: Array.from({ length: 14 }, (_, n) => `https://images.example.com/${n}/${'x'.repeat(8_000)}`),
}
const MODEL = 'bench/still'
const LARGE_BODY = JSON.stringify({ model: MODEL, input: LARGE_INPUT })

const WRONG_ENTRIES = 4_900
const TAGS = Array.from({ length: 300 }, (_, n) => `value-${n}-xxxxxxxxxx`)
/** 64 KB that the model refuses; its check compares each entry with each tag. */
const WRONG_BODY = JSON.stringify({
  model: MODEL,
  input: { prompt: 'x', tags: Array.from({ length: WRONG_ENTRIES }, (_, n) => `valve-${n}`) },
})
/** A list of tags beside the parameters that every image model has. JSON is YAML. */
const DOCUMENT = JSON.stringify({
  name: MODEL,
  kind: 'image',
  engine: { type: 'preview' },
  input: { tags: { type: 'array', description: 'Tags', items: { type: 'string', enum: TAGS } } },
})

interface Ask {
  readonly path: string
  /** Without one, of the console. */
  readonly key?: string | undefined
  readonly body?: string | undefined
}

interface Flood {
  readonly name: string
  readonly asks: readonly Ask[]
  /** Milliseconds between two requests; 0: all at once, and only once. */
  readonly everyMs: number
  /** The next request continues where the answer says. */
  readonly pages?: boolean
}

interface FloodData {
  readonly flood: Flood
  readonly port: number
  readonly cookie: string
}

/** In a thread: the answers of the load must not delay the measurement. */
function runFlood({ flood: { asks, everyMs, pages = false }, port, cookie }: FloodData): void {
  const agent = new Agent({ keepAlive: true, maxSockets: 200 })
  const statuses: Record<string, number> = {}
  let next = ''
  let sent = 0
  let ended = false

  function send({ path, key, body }: Ask): void {
    const headers = key === undefined ? { cookie } : { authorization: `Bearer ${key}` }
    const count = (status: number | string) => {
      statuses[status] = (statuses[status] ?? 0) + 1
    }
    const asked = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        path: path + next,
        headers,
        method: body === undefined ? 'GET' : 'POST',
      },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => pages && parts.push(part))
        response.on('end', () => {
          count(response.statusCode ?? 0)
          if (!pages || response.statusCode !== 200) return
          const cursor = JSON.parse(Buffer.concat(parts).toString()).next
          next = cursor === null ? '' : `&before=${cursor}`
        })
      },
    )
    asked.on('error', () => ended || count('error'))
    asked.end(body)
  }

  const askNext = () => send(asks[sent++ % asks.length] as Ask)
  if (everyMs === 0) for (const each of asks) send(each)
  const timer = everyMs === 0 ? undefined : setInterval(askNext, everyMs)
  parentPort?.once('message', () => {
    ended = true
    clearInterval(timer)
    parentPort?.postMessage(statuses)
    agent.destroy()
  })
}

interface Prepared {
  readonly cookie: string
  readonly keys: readonly string[]
  readonly largeIds: readonly string[]
  readonly neighbour: { readonly keys: readonly string[]; readonly id: string }
}

/** `addAll` adds runs as fast as the database can. Closes the store. */
async function prepare(store: Store, addAll: (runs: readonly NewRun[]) => Promise<void>): Promise<Prepared> {
  const nowMs = Date.now()
  const accountOf = (name: string) => store.ensureAccount({ name, credits: 1_000_000_000, nowMs })
  const accountId = await accountOf('default')
  const otherId = await accountOf('other')
  const addKeys = async (owner: number, count: number, disabled = false) => {
    const keys = Array.from({ length: count }, newKey)
    const key = { accountId: owner, name: 'bench', nowMs, disabled, allowedIps: ['127.0.0.1', '10.0.0.0/8'] }
    for (const { hash, prefix } of keys) await store.addKey({ ...key, hash, prefix })
    return keys.map(({ apiKey }) => apiKey)
  }
  const keys = await addKeys(accountId, CLIENT_KEYS)
  const otherKeys = await addKeys(otherId, 100)
  await addKeys(accountId, MANY_KEYS, true)
  const run = { accountId, keyId: undefined, model: 'rushes/preview-image', kind: 'image', price: 1 } as const
  const idOf = (n: number) => `run_${String(n).padStart(20, '0')}`
  const runOf = (n: number, input: object): NewRun => ({
    ...run,
    id: idOf(n),
    input: { ...input },
    createdAtMs: nowMs - RUNS + n,
  })
  const prompt = 'a lighthouse at dusk with long shadows and warm light '.repeat(8)
  await addAll(Array.from({ length: RUNS }, (_, n) => runOf(n, { prompt: `${prompt}${n}` })))
  await addAll(Array.from({ length: LARGE_RUNS }, (_, n) => runOf(RUNS + n, LARGE_INPUT)))
  const id = 'run_neighbour00000000000'
  await addAll([{ ...run, accountId: otherId, id, input: { prompt: 'a fox' }, createdAtMs: nowMs }])
  const userId = (await store.addUser({ email: 'ann@example.com', accountId, nowMs })) ?? 0
  const token = newSecret()
  const session = { userId, fromLink: false, address: undefined, userAgent: undefined, nowMs }
  await store.addSession({ ...session, hash: hashOfKey(token), expiresAtMs: nowMs + 86_400_000 })
  await store.close()
  const largeIds = Array.from({ length: LARGE_RUNS }, (_, n) => idOf(RUNS + n))
  return { cookie: `rushes_session=${token}`, keys, largeIds, neighbour: { keys: otherKeys, id } }
}

function floodsOf({ keys, largeIds }: Prepared): readonly Flood[] {
  const ids = largeIds.slice(0, IDS).join(',')
  const [console, often] = ['/api/console', { everyMs: 50 }]
  return [
    { name: 'quiet', asks: [{ path: '/healthz' }], everyMs: 1_000 },
    { name: `${MANY_KEYS} keys, listed 20 times a second`, asks: [{ path: `${console}/keys` }], ...often },
    {
      name: `search without a match in ${RUNS} runs`,
      asks: [{ path: `${console}/runs?search=walrus` }],
      ...often,
      pages: true,
    },
    { name: 'filter without a match', asks: [{ path: `${console}/runs?status=failed` }], ...often },
    { name: '100 runs of 0.8 MB, listed', asks: [{ path: `${console}/runs?limit=100` }], ...often },
    {
      name: `list with ${IDS} more runs of 0.8 MB`,
      asks: [{ path: `${console}/runs?ids=${ids}` }],
      ...often,
    },
    { name: 'details of a run of 0.8 MB', asks: [{ path: `${console}/runs/${largeIds[0]}` }], ...often },
    { name: 'spend per day', asks: [{ path: `${console}/spend?days=366` }], ...often },
    { name: 'CSV of the ledger', asks: [{ path: `${console}/credits.csv` }], everyMs: 200 },
    {
      name: `status of runs of 0.8 MB, ${keys.length} keys`,
      asks: keys.map((key, n) => ({ key, path: `/api/v1/runs/${largeIds[n % largeIds.length]}` })),
      // All that their limits allow: 20 requests in 10 s each.
      everyMs: 500 / keys.length,
    },
    {
      name: `${CREATES} creates of ${Math.round(LARGE_BODY.length / 1_000)} KB at once`,
      asks: Array.from({ length: CREATES }, (_, n) => ({
        key: keys[n % keys.length],
        path: '/api/v1/runs',
        body: LARGE_BODY,
      })),
      everyMs: 0,
    },
    {
      name: `creates with ${WRONG_ENTRIES} wrong entries`,
      asks: keys.map((key) => ({ key, path: '/api/v1/runs', body: WRONG_BODY })),
      ...often,
    },
  ]
}

async function measure(name: string, data: Omit<FloodData, 'flood'>, prepared: Prepared): Promise<void> {
  const { keys, id } = prepared.neighbour
  for (const flood of floodsOf(prepared).filter((each) => each.name.includes(process.argv[3] ?? ''))) {
    let line = await dial(data.port)
    let asked = 0
    const ask = async () => {
      const answer = await Promise.race([
        line.ask(statusText(keys[asked++ % keys.length] ?? '', id)),
        sleep(MAX_WAIT_MS, undefined),
      ])
      if (answer === undefined) {
        line.end()
        line = await dial(data.port)
        return MAX_WAIT_MS
      }
      expectStatus(200, answer)
      return answer.ms
    }
    for (let n = 0; n < 20; n++) await ask()
    const worker = new Worker(fileURLToPath(import.meta.url), {
      workerData: { ...data, flood } satisfies FloodData,
    })
    const ms: number[] = []
    const endAt = performance.now() + SECONDS * 1_000
    while (performance.now() < endAt) {
      ms.push(await ask())
      await sleep(15)
    }
    const statuses = await new Promise<Record<string, number>>((told) => {
      worker.once('message', told)
      worker.postMessage('end')
    })
    await worker.terminate()
    line.end()
    const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
    const cells = [quantile(ms, 0.5), quantile(ms, 0.99), Math.max(...ms)].map((each) => each.toFixed(1))
    row(name, flood.name, ...cells, answers.join(', ') || 'none')
    // The service ends what it has begun.
    await sleep(3_000)
  }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  const env = { PATH: process.env.PATH, HOME: folder }
  const model = join(folder, 'still.yaml')
  writeFileSync(model, DOCUMENT)
  const words = [
    resolve('bin/rushes.cjs'),
    'serve',
    '--port',
    '0',
    '--json',
    '--role',
    'api',
    '--models',
    model,
  ]
  const chosen = process.argv[2]
  const postgres = chosen === 'sqlite' ? undefined : await startPostgres()

  async function run(name: string, data: string, more: readonly string[], prepared: Prepared): Promise<void> {
    const server = await started([...words, '--data', data, ...more], env)
    await measure(name, { port: server.port, cookie: prepared.cookie }, prepared)
    await server.end()
  }

  try {
    row('', 'meanwhile', 'p50 ms', 'p99 ms', 'longest ms', 'answers to the other account')
    row('---', '---', '--:', '--:', '--:', '---')
    if (chosen !== 'postgres') {
      const data = join(folder, 'sqlite')
      mkdirSync(data)
      const database = openServiceDatabase(join(data, 'service.db'))
      const store = storeOf(database)
      const prepared = await prepare(store, async (runs) =>
        database.transaction(() => {
          for (const each of runs) void store.addRun(each, () => {})
        }),
      )
      await run('SQLite', data, [], prepared)
    }
    if (postgres !== undefined) {
      const url = await postgres.createDatabase()
      const store = await openPostgresStore(url)
      const prepared = await prepare(store, async (runs) => {
        for (let at = 0; at < runs.length; at += 1_000)
          await Promise.all(runs.slice(at, at + 1_000).map((each) => store.addRun(each, () => {})))
      })
      await run('PostgreSQL', join(folder, 'postgres'), ['--database', url], prepared)
    }
  } finally {
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

if (isMainThread) await main()
else runFlood(workerData as FloodData)
