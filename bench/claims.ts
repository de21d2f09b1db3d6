/**
 * What a claim from a long queue costs: `npm run bench:claims`. 100,000 queued runs of one or more accounts, and the time
 * of one claim with its commit. Prints a Markdown table.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/host/database.js'
import { openSqliteStore } from '../src/service/store/sqlite/index.js'
import { SERVICE_MIGRATIONS } from '../src/service/store/sqlite/service-migrations.js'
import { median, row } from './table.js'

const RUNS = 100_000
const CLAIMS = 50

/** Milliseconds of the median and of the longest claim. */
async function claiming(accounts: number): Promise<readonly [number, number]> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))
  const path = join(folder, 'service.db')
  try {
    const database = openDatabase({ path, migrations: SERVICE_MIGRATIONS })
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
    const store = openSqliteStore(path)
    await store.renewLease('worker')
    const ms: number[] = []
    for (let time = 0; time < CLAIMS; time++) {
      const started = performance.now()
      await store.claimRun('worker', [], 1)
      ms.push(performance.now() - started)
    }
    await store.close()
    return [median(ms), Math.max(...ms)]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

row('accounts', 'median ms', 'max ms')
row('--:', '--:', '--:')
for (const accounts of [1, 20, 1_000, 10_000]) {
  const [typical, longest] = await claiming(accounts)
  row(accounts, typical.toFixed(1), longest.toFixed(1))
}
