/**
 * A consistent copy of a database that other processes are writing. SQLite works in a thread of its own meanwhile, so that
 * signals are handled.
 */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Row } from './database.js'
import { BUSY_TIMEOUT_MS } from './database-file.js'
import { newApplicationId } from './database-identity.js'

/** The part of `libsql/promise` that is used here; its own types are all `any`. */
interface AsyncConnection {
  exec(sql: string): Promise<unknown>
  prepare(sql: string): Promise<{ all(): Promise<Row[]> }>
  close(): void
}

const loadModule = createRequire(import.meta.url)

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** Not created: a copy that was given up, and removed, must not come back. */
const existing = (path: string): string => `${pathToFileURL(path).href}?mode=rw`

async function connected<Result>(path: string, work: (database: AsyncConnection) => Promise<Result>) {
  const AsyncDatabase: new (path: string, options: object) => AsyncConnection = loadModule('libsql/promise')
  const database = new AsyncDatabase(existing(path), {})
  try {
    await database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    return await work(database)
  } finally {
    database.close()
  }
}

/**
 * Copies the database `from` into the empty file `to`. `VACUUM INTO` reads one snapshot and holds no lock that a writer waits
 * for; the backup API of SQLite begins again with every write, and libsql does not offer it. The copy is complete in its one
 * file, and gets an application id of its own: put in the place of the open original, it is recognized as another file.
 */
export async function copyDatabase(from: string, to: string): Promise<void> {
  await connected(from, (database) => database.exec(`VACUUM INTO ${quoted(existing(to))}`))
  await connected(to, (database) => database.exec(newApplicationId()))
}

/**
 * The rows of each statement. Throws what SQLite finds wrong with the file: not its indexes, which `VACUUM INTO` writes anew and
 * which would take ten times as long.
 */
export async function checkCopy(path: string, statements: readonly string[]): Promise<readonly Row[][]> {
  return await connected(path, async (database) => {
    const rows = async (sql: string) => (await database.prepare(sql)).all()
    const found = (await rows('PRAGMA quick_check(5)')).map(({ quick_check }) => String(quick_check))
    if (found.join() !== 'ok') throw Object.assign(new Error(found.join('; ')), { code: 'SQLITE_CORRUPT' })
    const results: Row[][] = []
    for (const sql of statements) results.push(await rows(sql))
    return results
  })
}
