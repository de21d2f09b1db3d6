/** Keys for a load: each may send 20 requests in 10 s, so there are many of one account, more than it can have in use. */
import pg from 'pg'
import { hashOfKey, newKey, prefixOfKey } from '../src/service/secrets.js'
import type { Store } from '../src/service/store/contract.js'
import { openPostgresStore } from '../src/service/store/postgres/index.js'
import { openServiceDatabase, openSqliteStore } from '../src/service/store/sqlite/index.js'

/** Before the first start of the service on this database, which then makes no key of its own. `place`: a file, or the URL of PostgreSQL. */
export async function addKeys(place: string, count: number): Promise<readonly string[]> {
  const isPostgres = place.startsWith('postgres')
  const store: Store = isPostgres ? await openPostgresStore(place) : openSqliteStore(place)
  const nowMs = Date.now()
  const accountId = await store.ensureAccount({ name: 'default', credits: 1_000_000_000, nowMs })
  const keys = Array.from({ length: count }, newKey)
  const terms = { accountId, name: 'bench', nowMs, disabled: true }
  for (const key of keys) await store.addKey({ ...terms, hash: hashOfKey(key), prefix: prefixOfKey(key) })
  await store.close()
  await (isPostgres ? enableIn(place) : enableInFile(place))
  return keys
}

async function enableIn(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('UPDATE rushes.keys SET disabled = false')
  await client.end()
}

function enableInFile(path: string): void {
  const database = openServiceDatabase(path)
  database.run('UPDATE keys SET disabled = 0')
  database.close()
}
