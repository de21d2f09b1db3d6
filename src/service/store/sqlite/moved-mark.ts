/**
 * The mark of a database whose data was moved to PostgreSQL (`admin migrate`): a table, and triggers that refuse every change, also
 * those of processes that have the file open. With two copies that can be written, a key that is disabled in one works in the other.
 *
 *   copying     says only why the file is locked. Without a lock, the migration has ended, and nothing was moved.
 *   committing  PostgreSQL is about to commit, or has committed: the next `admin migrate` looks there. Nothing may write.
 *   moved       PostgreSQL has the data. Nothing may write.
 */
import { existsSync } from 'node:fs'
import { type RushesError, usageError } from '../../../errors.js'
import type { Row } from '../../../host/database.js'
import { BUSY_TIMEOUT_MS, type Connection, withDatabase } from '../../../host/database-file.js'
import { errorCode, isBusy } from '../../../host/system-error.js'

export interface MovedMark {
  /** Of this migration; the new database has it too. */
  readonly id: string
  /** The new database, without its user and password. */
  readonly database: string
  readonly state: 'copying' | 'committing' | 'moved'
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** SQL that sets the mark. `tables`: those that refuse changes from now on, unless it says `copying`. */
export const markStatements = ({ id, database, state }: MovedMark, tables: readonly string[]): string =>
  [
    'CREATE TABLE IF NOT EXISTS moved (id TEXT NOT NULL, database TEXT NOT NULL, state TEXT NOT NULL)',
    'DELETE FROM moved',
    `INSERT INTO moved VALUES (${[id, database, state].map(quoted).join(', ')})`,
    ...(state === 'copying' ? [] : tables).flatMap((table) =>
      CHANGES.map(
        (change) => `CREATE TRIGGER IF NOT EXISTS moved_${change}_${table} BEFORE ${change} ON ${table}
         BEGIN SELECT RAISE(ABORT, '${REFUSAL}'); END`,
      ),
    ),
  ].join(';\n')

const CHANGES = ['INSERT', 'UPDATE', 'DELETE'] as const
const REFUSAL = 'the data was moved to another database'

/** SQL that removes the mark, also one of another version, which knows other tables. */
export const unmarkStatements = (database: Connection): string =>
  [
    ...namesIn(database, "type = 'trigger' AND name LIKE 'moved\\_%' ESCAPE '\\'").map(
      (name) => `DROP TRIGGER ${name}`,
    ),
    'DROP TABLE IF EXISTS moved',
  ].join(';\n')

/** All tables except the mark itself. */
export const tablesIn = (database: Connection): readonly string[] =>
  namesIn(database, "type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'moved'")

const namesIn = (database: Connection, condition: string): readonly string[] =>
  (database.prepare(`SELECT name FROM sqlite_schema WHERE ${condition}`).all() as Row[]).map(({ name }) =>
    String(name),
  )

/** Undefined without a mark. */
export const readMark = (path: string, busyTimeoutMs = 0): MovedMark | undefined =>
  existsSync(path) ? withDatabase(path, busyTimeoutMs, markIn) : undefined

/** As `readMark`. */
export function markIn(database: Connection): MovedMark | undefined {
  const [table] = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'moved'")
    .all()
  if (table === undefined) return undefined
  return (database.prepare('SELECT id, database, state FROM moved').all() as Row[])[0] as
    | MovedMark
    | undefined
}

/** Throws `RushesError` (usage) when the data was moved or is being moved. Removes the mark of a migration that copied nothing. */
export function refuseMoved(path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): void {
  withDatabase(path, busyTimeoutMs, (database) => {
    const mark = markIn(database)
    if (mark === undefined) return
    if (mark.state !== 'copying') throw explainMark(path, mark)
    try {
      database.exec('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE')
    } catch (error) {
      throw isBusy(error) ? explainMark(path, mark) : error
    }
    // Read again under the lock: the migration may have gone on meanwhile.
    const last = markIn(database)
    const hasGoneOn = last !== undefined && last.state !== 'copying'
    database.exec(hasGoneOn ? 'ROLLBACK' : 'DROP TABLE IF EXISTS moved; COMMIT')
    if (hasGoneOn) throw explainMark(path, last)
  })
}

/** Of an error of a database that is marked; undefined for other errors. */
export function explainMoved(path: string, error: unknown): RushesError | undefined {
  const isRefused = errorCode(error)?.startsWith('SQLITE_CONSTRAINT') && String(error).includes(REFUSAL)
  if (!isRefused && !isBusy(error)) return undefined
  try {
    const mark = readMark(path)
    return mark && explainMark(path, mark)
  } catch {
    return undefined
  }
}

export function explainMark(path: string, { state, database }: MovedMark): RushesError {
  if (state === 'copying')
    return usageError(
      `${path} is being moved to ${database}.`,
      'Wait until `rushes admin migrate` has ended. Then use the database (--database).',
    )
  if (state === 'committing')
    return usageError(
      `The move of ${path} to ${database} was interrupted, and may have been completed.`,
      'Run `rushes admin migrate` again with the same folder and database: it completes the move.',
    )
  return usageError(
    `The data of ${path} was moved to ${database}.`,
    'Use it there (--database). To use this folder again: `rushes admin migrate --from <folder> --undo` (docs/scale.md).',
  )
}
