/** Reads databases without creating, migrating or repairing them. */
import { statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { RushesError } from '../errors.js'
import { reasonCorrupt } from './corruption.js'
import type { Row, Value } from './database.js'
import { withDatabase } from './database-file.js'
import { describeReason } from './system-error.js'

/** A process that ends holds the file for a moment while it writes the log back. */
const READ_TIMEOUT_MS = 200
const INSPECT_TIMEOUT_MS = 2_000

/** The rows of one query. Waits no longer than a person who presses a key notices. Throws when the file cannot be read. */
export const readRows = (path: string, sql: string, ...values: readonly Value[]): readonly Row[] =>
  withDatabase(
    `${pathToFileURL(path).href}?mode=ro`,
    READ_TIMEOUT_MS,
    (database) => database.prepare(sql).all(values) as Row[],
  )

/** In bytes, with the write-ahead log. */
export const sizeOfDatabase = (path: string): number =>
  [path, `${path}-wal`].reduce((sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0), 0)

export interface Inspection {
  /** The number of migrations that were applied; 0 when it cannot be read. */
  readonly version: number
  /** `ok`, or what is wrong. */
  readonly integrity: string
}

/** Checks a file without writing to it. */
export function inspectDatabase(path: string): Inspection {
  const reason = reasonCorrupt(path)
  if (reason !== undefined) return { version: 0, integrity: reason }
  try {
    return withDatabase(path, INSPECT_TIMEOUT_MS, (database) => {
      const [found] = database.prepare('PRAGMA user_version').all() as { user_version: number }[]
      const rows = database.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[]
      return {
        version: found?.user_version ?? 0,
        integrity: rows.map(({ integrity_check }) => integrity_check).join('; '),
      }
    })
  } catch (error) {
    // The SQLite package cannot be loaded.
    if (error instanceof RushesError) throw error
    return { version: 0, integrity: describeReason(error) }
  }
}
