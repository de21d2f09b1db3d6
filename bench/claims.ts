/**
 * What a claim from a long queue costs: `npm run bench -- claims`, or `npm run bench -- claims postgres`. 100,000 queued runs of
 * one or more accounts and models, and the time of one claim with its commit. Prints a Markdown table.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/host/database.js'
import type { Store } from '../src/service/store/index.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openSqliteStore, SQLITE_SCRIPTS } from '../src/service/store/sqlite/index.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { median, row } from './table.js'

const RUNS = 100_000
const CLAIMS = 50

interface Queue {
  readonly accounts: number
  /** The accounts queue runs of these models in turn. */
  readonly models: number
  /** Models with runs of the last account only, after all others. The worker carries these alone; with 0, it carries all. */
  readonly last: number
}

const nameOf = (model: number | string): string => `acme/model-${model}`
/** Runs of the models that only the last account queues. */
const lastOf = ({ last }: Queue): readonly string[] =>
  last === 0 ? [] : Array.from({ length: CLAIMS }, (_, at) => nameOf(`last-${at % last}`))

interface Filled {
  readonly store: Store
  remove(): Promise<void>
}

async function fillSqlite(queue: Queue): Promise<Filled> {
  const { accounts, models } = queue
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  const path = join(folder, 'service.db')
  const database = openDatabase({ path, migrations: SQLITE_SCRIPTS })
  database.transaction(() => {
    for (let id = 1; id <= accounts; id++)
      database.run('INSERT INTO accounts (id, name, created_at) VALUES (?1, ?2, 0)', id, `account ${id}`)
    const add = (id: string, account: number, model: string, turn: number) =>
      database.run(
        `INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at, turn)
         VALUES (?1, ?2, ?3, 'image', '{}', 0, 'queued', 0, ?4)`,
        ...[id, account, model, turn],
      )
    for (let at = 0; at < RUNS; at++) {
      const round = Math.floor(at / accounts)
      add(`run_${at}`, 1 + (at % accounts), nameOf(round % models), Math.floor(round / models))
    }
    for (const [at, model] of lastOf(queue).entries()) add(`last_${at}`, accounts, model, at)
  })
  database.close()
  return {
    store: openSqliteStore(path),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

async function fillPostgres(queue: Queue): Promise<Filled> {
  const { accounts, models } = queue
  const server = await startPostgres()
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  await server.query(
    `SET search_path = rushes;
     INSERT INTO accounts (id, name, created_at) SELECT i, 'account ' || i, 0 FROM generate_series(1, ${accounts}) AS i;
     INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at, turn)
     SELECT 'run_' || i, 1 + i % ${accounts}, '${nameOf('')}' || (i / ${accounts}) % ${models}, 'image', '{}', 0, 'queued', 0,
       i / ${accounts} / ${models}
     FROM generate_series(0, ${RUNS - 1}) AS i`,
    url,
  )
  for (const [at, model] of lastOf(queue).entries())
    await server.query(
      `INSERT INTO rushes.runs (id, account_id, model, kind, input, price, status, created_at, turn)
       VALUES ('last_${at}', ${accounts}, '${model}', 'image', '{}', 0, 'queued', 0, ${at})`,
      url,
    )
  return {
    store,
    async remove() {
      await server.dropDatabase(url)
      await server.stop()
    },
  }
}

const fill = process.argv[2] === 'postgres' ? fillPostgres : fillSqlite

interface Figures {
  /** Other work on the machine slows the others down. */
  readonly shortestMs: number
  readonly typicalMs: number
  readonly longestMs: number
  /** To count the queue. */
  readonly countMs: number
}

async function claiming(queue: Queue): Promise<Figures> {
  const { store, remove } = await fill(queue)
  const all = Array.from({ length: queue.models }, (_, model) => nameOf(model))
  const models = queue.last === 0 ? all : [...new Set(lastOf(queue))]
  try {
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const started = performance.now()
      await work()
      return performance.now() - started
    }
    const claim = async () => {
      if ((await store.claimRun({ worker: 'worker', nowMs: 1, models })) === undefined)
        throw new Error('no run')
    }
    const ms: number[] = []
    for (let time = 0; time < CLAIMS; time++) ms.push(await timed(claim))
    const countMs = await timed(() => store.queueLengths())
    return { shortestMs: Math.min(...ms), typicalMs: median(ms), longestMs: Math.max(...ms), countMs }
  } finally {
    await store.close()
    await remove()
  }
}

row('accounts', 'models', 'of the worker', 'min ms', 'median ms', 'max ms', 'count of the queue ms')
row('--:', '--:', '--', '--:', '--:', '--:', '--:')
const QUEUES: readonly Queue[] = [
  ...[1, 20, 1_000, 10_000].map((accounts) => ({ accounts, models: 1, last: 0 })),
  ...[0, 1, 20].map((last) => ({ accounts: 200, models: 20, last })),
]
for (const queue of QUEUES) {
  const { shortestMs, typicalMs, longestMs, countMs } = await claiming(queue)
  const carried = queue.last === 0 ? 'all' : `${queue.last} others, last in the queue`
  const figures = [shortestMs, typicalMs, longestMs, countMs].map((ms) => ms.toFixed(1))
  row(queue.accounts, queue.models, carried, ...figures)
}
