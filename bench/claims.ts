/**
 * What a claim from a long queue costs: `npm run bench:claims`, or `npm run bench:claims -- postgres`. 100,000 queued runs of
 * one or more accounts, and the time of one claim with its commit. Prints a Markdown table. /
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/host/database.js'
import type { Store } from '../src/service/store/contract.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openSqliteStore } from '../src/service/store/sqlite/index.js'
import { SQLITE_MIGRATIONS } from '../src/service/store/sqlite/migrations.js'
import { startPostgres } from '../test/support/postgres-server.js'
import { median, row } from './table.js'

const RUNS = 100_000
const CLAIMS = 50

interface Filled {
  readonly store: Store
  remove(): Promise<void>
}

async function fillSqlite(accounts: number): Promise<Filled> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  const path = join(folder, 'service.db')
  const database = openDatabase({ path, migrations: SQLITE_MIGRATIONS })
  database.transaction(() => {
    for (let id = 1; id <= accounts; id++)
      database.run('INSERT INTO accounts (id, name, created_at) VALUES (?1, ?2, 0)', id, `account ${id}`)
    for (let at = 0; at < RUNS; at++)
      database.run(
        `INSERT INTO runs (id, account_id, model, kind, input, price, status, owner, created_at)
         VALUES (?1, ?2, 'm', 'image', '{}', 0, 'queued', '', 0)`,
        `run_${at}`,
        1 + (at % accounts),
      )
  })
  database.close()
  return {
    store: openSqliteStore(path),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

async function fillPostgres(accounts: number): Promise<Filled> {
  const server = await startPostgres()
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  await server.query(
    `SET search_path = rushes;
     INSERT INTO accounts (id, name, created_at) SELECT i, 'account ' || i, 0 FROM generate_series(1, ${accounts}) AS i;
     INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at)
     SELECT 'run_' || i, 1 + i % ${accounts}, 'm', 'image', '{}', 0, 'queued', 0 FROM generate_series(0, ${RUNS - 1}) AS i`,
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

async function claiming(accounts: number): Promise<Figures> {
  const { store, remove } = await fill(accounts)
  try {
    await store.renewLease('worker')
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const started = performance.now()
      await work()
      return performance.now() - started
    }
    const ms: number[] = []
    for (let time = 0; time < CLAIMS; time++) ms.push(await timed(() => store.claimRun('worker', [], 1)))
    const countMs = await timed(() => store.queueLengths())
    return { shortestMs: Math.min(...ms), typicalMs: median(ms), longestMs: Math.max(...ms), countMs }
  } finally {
    await store.close()
    await remove()
  }
}

row('accounts', 'min ms', 'median ms', 'max ms', 'count of the queue ms')
row('--:', '--:', '--:', '--:', '--:')
for (const accounts of [1, 20, 1_000, 10_000]) {
  const { shortestMs, typicalMs, longestMs, countMs } = await claiming(accounts)
  row(accounts, shortestMs.toFixed(1), typicalMs.toFixed(1), longestMs.toFixed(1), countMs.toFixed(1))
}
