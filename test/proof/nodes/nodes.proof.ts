/**
 * Several nodes under fire: three that answer requests and three that render, as processes on one PostgreSQL and one S3 store, with
 * 64 clients for ten minutes, while every 5 s a node is killed with -9, and database and storage are restarted once. Then all nodes
 * are restarted in turn with SIGTERM. What was seen is written down, and a checker that knows nothing else reads it afterwards.
 * `npm run proof -- nodes`; PROOF=3 for a minute.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createPlace, isReady, type Place, type Running, rushes, start, urlOf } from '../../support/binary.js'
import { hasPostgres, startPostgres, type TestPostgres } from '../../support/postgres.js'
import { PROOF } from '../../support/proof.js'
import { hasS3rver, type S3Store, startS3Store } from '../../support/s3-store.js'
import { until } from '../../support/until.js'
import { brokenPromises } from './check-history.js'
import { createAndFollow } from './clients.js'
import { createHistory, type Event, type History } from './history.js'

const SECONDS = 20 * PROOF
const CLIENTS = 64
const KEYS = 32
const ACCOUNTS = 8
const NODES = 3
const KILL_EVERY_MS = 5_000
/** For what has been created to end, once the faults are over. */
const CALM_MS = 120_000

const LIMIT = { requests: 20, windowMs: 10_000 }

/** A picture that only its prompt decides, so that the checker knows its bytes. */
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
const outputOf = (prompt: string): Uint8Array => Buffer.concat([SIGNATURE, Buffer.from(`${prompt}\n`)])
const ENGINE = `sed -n 's/.*"prompt":"\\([^"]*\\)".*/\\1/p' > "$RUSHES_OUTPUT_DIR/.prompt" && { printf '\\211PNG\\r\\n\\032\\n'; cat "$RUSHES_OUTPUT_DIR/.prompt"; } > "$RUSHES_OUTPUT_DIR/picture.png" && rm "$RUSHES_OUTPUT_DIR/.prompt"`

interface Node {
  readonly name: string
  readonly url: string
  /** On standard error, since its last start. */
  said(): string
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>
  /** On the same port. */
  restart(): Promise<void>
}

async function startNode(place: Place, name: string, words: readonly string[]): Promise<Node> {
  const launch = (port: string): Running =>
    start(place, ['serve', '--json', '--port', port, ...words], { stdin: 'ignore' })
  let process = launch('0')
  const url = await urlOf(process)
  return {
    name,
    url,
    said: () => process.printed.stderr,
    async end(signal) {
      process.kill(signal)
      return (await process.ended).code
    },
    async restart() {
      process = launch(new URL(url).port)
      await urlOf(process)
    },
  }
}

async function createKeys(place: Place, database: string) {
  const admin = async (...words: string[]) => {
    const { stdout, stderr } = await rushes(place, ['admin', ...words, '--database', database, '--json'])
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout)
  }
  const keys: { readonly name: string; readonly apiKey: string }[] = []
  for (let account = 0; account < ACCOUNTS; account++)
    await admin('account', 'create', `account-${account}`, '--balance', '1000000')
  for (let key = 0; key < KEYS; key++) {
    const { api_key: apiKey } = await admin('key', 'create', '--account', `account-${key % ACCOUNTS}`)
    keys.push({ name: `key-${key}`, apiKey })
  }
  return keys
}

describe.skipIf(!hasPostgres || !hasS3rver)('six nodes on one PostgreSQL and one S3 store', () => {
  it('keep every promise while they are killed', { timeout: (SECONDS + 400) * 1_000 }, async () => {
    const home = createPlace()
    const postgres = await startPostgres()
    const storage = await startS3Store()
    const database = await postgres.createDatabase()
    const place = home.with(storage.env)
    const shared = ['--database', database, '--storage', `s3://${storage.bucket}/proof`]
    const engine = ['--engine', `image=${ENGINE}`, '--concurrency', '4']
    const api = await Promise.all(
      Array.from({ length: NODES }, (_, n) =>
        startNode(place, `api ${n}`, [
          // A run carries the model of the node that accepted it.
          ...[...shared, ...engine, '--role', 'api'],
          ...['--data', join(home.home, `api-${n}`)],
        ]),
      ),
    )
    const workers = await Promise.all(
      Array.from({ length: NODES }, (_, n) =>
        startNode(place, `worker ${n}`, [
          ...[...shared, ...engine, '--role', 'worker'],
          ...['--data', join(home.home, `worker-${n}`)],
        ]),
      ),
    )
    const keys = await createKeys(place, database)

    const history = createHistory(process.env.PROOF_HISTORY ?? join(home.home, 'history.jsonl'))
    const stop = new AbortController()
    const endAtMs = performance.now() + SECONDS * 1_000 + CALM_MS
    const clients = Array.from({ length: CLIENTS }, (_, n) =>
      createAndFollow({
        nodes: api.map(({ url }) => url),
        key: keys[n % KEYS] ?? { name: '', apiKey: '' },
        isHasty: n % 8 === 0,
        history,
        stop: stop.signal,
        endAtMs,
      }),
    )
    const fire = { nodes: [...api, ...workers], postgres, storage, history }
    const faults = await injectFaults(fire)
    await restartInTurn(fire)
    stop.abort()
    await Promise.all(clients)
    for (const { name, url, said } of [...api, ...workers])
      await until(`readiness of ${name}`, () => isReady(url)).catch((error: Error) => {
        throw new Error(`${error.message}; it said: ${said()}`)
      })
    await readStored(postgres, database, history)
    const verified = await rushes(place, ['admin', 'verify', '--database', database, '--json'])
    history.add({ is: 'verified', problems: JSON.parse(verified.stdout).problems })

    const promises = { ...LIMIT, outputOf }
    const figures = { seconds: SECONDS, ...faults, ...figuresOf(history.events) }
    process.stdout.write(`six nodes under fire: ${JSON.stringify(figures)}\n`)
    await history.close()
    await postgres.stop()
    expect(brokenPromises(history.events, promises).slice(0, 50)).toEqual([])
  })
})

interface Fire {
  readonly nodes: readonly Node[]
  readonly postgres: TestPostgres
  readonly storage: S3Store
  readonly history: History
}

/** Resolves when the time is over and all nodes run again. */
async function injectFaults({ nodes, postgres, storage, history }: Fire) {
  const startedAtMs = performance.now()
  const elapsedMs = () => performance.now() - startedAtMs
  const note = (what: string) => history.add({ is: 'fault', atMs: performance.now(), what })
  const counts = { 'nodes killed': 0, 'database restarts': 0, 'storage restarts': 0 }
  while (elapsedMs() < SECONDS * 1_000) {
    await sleep(KILL_EVERY_MS)
    if (counts['storage restarts'] === 0 && elapsedMs() > (SECONDS * 1_000) / 3) {
      note('storage restarted')
      counts['storage restarts']++
      await storage.stop()
      await sleep(2_000)
      await storage.restart()
    }
    if (counts['database restarts'] === 0 && elapsedMs() > (SECONDS * 2_000) / 3) {
      const fromMs = performance.now()
      counts['database restarts']++
      await postgres.restart()
      history.add({ is: 'database restart', fromMs, toMs: performance.now() })
    }
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) continue
    note(`${node.name} killed`)
    counts['nodes killed']++
    await node.end('SIGKILL')
    await node.restart()
  }
  return counts
}

async function restartInTurn({ nodes, history }: Fire): Promise<void> {
  const fromMs = performance.now()
  for (const node of nodes) {
    expect(await node.end('SIGTERM'), node.said()).toBe(0)
    await node.restart()
  }
  history.add({ is: 'rolling restart', fromMs, toMs: performance.now() })
}

async function readStored(postgres: TestPostgres, database: string, history: History): Promise<void> {
  const rows = await postgres.query(
    `SELECT runs.id, runs.input, runs.status,
       coalesce((SELECT string_agg(sha256, ',' ORDER BY position) FROM rushes.outputs WHERE run_id = runs.id), '') AS outputs
     FROM rushes.runs AS runs`,
    database,
  )
  for (const { id, input, status, outputs } of rows) {
    const { prompt } = typeof input === 'string' ? JSON.parse(input) : (input as { prompt: string })
    const list = String(outputs).split(',').filter(Boolean)
    history.add({ is: 'stored', id: String(id), prompt, status: String(status), outputs: list })
  }
  const entries = await postgres.query(
    `SELECT run_id, kind, amount FROM rushes.credits WHERE kind <> 'added' ORDER BY sequence`,
    database,
  )
  for (const { run_id: run, kind, amount } of entries)
    history.add({
      is: 'entry',
      run: String(run),
      kind: kind === 'charge' ? 'charge' : 'refund',
      amount: Number(amount),
    })
}

function figuresOf(events: readonly Event[]) {
  const of = (is: Event['is']) => events.filter((event) => event.is === is)
  const statuses = new Map<string, number>()
  for (const event of events)
    if (event.is === 'create') {
      const name = event.status === 0 ? 'no response' : String(event.status)
      statuses.set(name, (statuses.get(name) ?? 0) + 1)
    }
  const failed = events.filter((event) => event.is === 'stored' && event.status === 'failed').length
  return {
    creates: [...statuses].map(([status, count]) => `${count} x ${status}`).join(', '),
    'runs stored': of('stored').length,
    'runs failed': failed,
    polls: of('poll').length,
    downloads: of('output').length,
  }
}
