/**
 * The mark of a database whose data was moved to PostgreSQL (`admin migrate`): a table, and triggers that refuse every change,
 * also of processes that have the file open. With two writable copies, a key that is disabled in one works in the other.
 *
 *   copying     says only why the file is locked. Without a lock, the migration has ended, and nothing was moved.
 *   committing  PostgreSQL is about to commit, or has committed: the next `admin migrate` looks there. Nothing may write.
 *   moved       PostgreSQL has the data. Nothing may write.
 */

import { existsSync } from 'node:fs'
import { type RushesError, usageError } from '../../../errors.js'
import type { OpenDatabase, Row } from '../../../host/database.js'
import {
  BUSY_TIMEOUT_MS,
  connect,
  rollBack,
  type SqliteConnection,
  withDatabase,
} from '../../../host/database-file.js'
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
export const unmarkStatements = (database: SqliteConnection): string =>
  [
    ...namesIn(database, "type = 'trigger' AND name LIKE 'moved\\_%' ESCAPE '\\'").map(
      (name) => `DROP TRIGGER ${name}`,
    ),
    'DROP TABLE IF EXISTS moved',
  ].join(';\n')

/** All tables except the mark itself. */
export const tablesIn = (database: SqliteConnection): readonly string[] =>
  namesIn(database, "type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'moved'")

const namesIn = (database: SqliteConnection, condition: string): readonly string[] =>
  (database.prepare(`SELECT name FROM sqlite_schema WHERE ${condition}`).all() as Row[]).map(({ name }) =>
    String(name),
  )

/** Undefined without a mark. */
export const readMark = (path: string, busyTimeoutMs = 0): MovedMark | undefined =>
  existsSync(path) ? withDatabase(path, busyTimeoutMs, markIn) : undefined

/** As `readMark`. */
export function markIn(database: SqliteConnection): MovedMark | undefined {
  const [table] = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'moved'")
    .all()
  if (table === undefined) return undefined
  return (database.prepare('SELECT id, database, state FROM moved').all() as Row[])[0] as
    | MovedMark
    | undefined
}

/** Throws `RushesError` (usage) when the data was or is being moved. Removes the mark of a migration that copied nothing. */
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

/** Holds the database of the folder still while its rows are copied, and marks it when they are moved. */

export interface SourceLock {
  /**
   * From now on others only read. Waits up to 10 s for a process that writes, then throws its error; throws `RushesError`
   * (usage) when the data was moved.
   */
  hold(): void
  /** From now on nothing writes to the data until `undo`, also when this process ends. */
  seal(): void
  /**
   * PostgreSQL has committed. When it fails, the data stays sealed, and the next migration completes it. Throws `RushesError`
   * (usage) when the mark of this move was removed.
   */
  complete(): void
  /** Nothing was moved: the data is as before. When it fails, as `complete`. Leaves the mark of another move. */
  undo(): void
  close(): void
}

export function createSourceLock(
  source: Pick<OpenDatabase, 'path' | 'isCurrent'>,
  move: Pick<MovedMark, 'id' | 'database'>,
): SourceLock {
  const { path } = source
  // A second connection: `source` reads meanwhile.
  const lock = connect(path)
  lock.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA synchronous = FULL`)

  /** The mark stays as it is read until the transaction ends. */
  function lockedMark(): MovedMark | undefined {
    if (!lock.inTransaction) lock.exec('BEGIN IMMEDIATE')
    if (!source.isCurrent()) throw new Error('the database was replaced while its data was copied')
    return markIn(lock)
  }
  const mark = (state: MovedMark['state']) =>
    lock.exec(`${markStatements({ ...move, state }, tablesIn(lock))}; COMMIT`)

  function refuseMarked(): void {
    const found = lockedMark()
    if (found === undefined || found.state === 'copying') return
    rollBack(lock)
    throw explainMark(path, found)
  }

  /** False when the mark is not of this move. A failure is not told: the mark stays as it is. */
  function changeOurs(change: () => void): boolean {
    try {
      if (lockedMark()?.id === move.id) change()
      else return false
    } catch {
    } finally {
      rollBack(lock)
    }
    return true
  }

  return {
    hold() {
      refuseMarked()
      mark('copying')
      // Another process may have come between.
      refuseMarked()
    },
    seal: () => mark('committing'),
    complete() {
      if (!changeOurs(() => mark('moved')))
        throw usageError(
          `The data of ${path} was moved to ${move.database}, but its mark was removed meanwhile: both can be changed.`,
          'Use only one of them. To use the database, stop what uses the folder and remove the folder.',
        )
    },
    undo: () => void changeOurs(() => lock.exec(`${unmarkStatements(lock)}; COMMIT`)),
    close() {
      // Statements that are not collected yet would keep the lock.
      rollBack(lock)
      lock.close()
    },
  }
}
