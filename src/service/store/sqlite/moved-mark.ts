/**
 * Marks a database whose data was moved to PostgreSQL (`admin migrate`). The mark is a table, with triggers that reject
 * every change, also changes of processes that have the file open. If both copies were writable, a key that is disabled
 * in one copy would still work in the other.
 *
 *   copying     Explains why the file is locked. If it is not locked, the migration ended and moved nothing.
 *   committing  PostgreSQL is about to commit or has committed. The next `admin migrate` checks this. No writes.
 *   moved       PostgreSQL has the data. No writes.
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
  /** Id of this migration, which the new database also stores. */
  readonly id: string
  /** Name of the new database, without user and password. */
  readonly database: string
  readonly state: 'copying' | 'committing' | 'moved'
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** SQL that sets the mark. `tables`: tables that reject changes from now on, unless the state is `copying`. */
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

/** SQL that removes the mark, even a mark of another version of `rushes` that has other tables. */
export const unmarkStatements = (database: SqliteConnection): string =>
  [
    ...namesIn(database, "type = 'trigger' AND name LIKE 'moved\\_%' ESCAPE '\\'").map(
      (name) => `DROP TRIGGER ${name}`,
    ),
    'DROP TABLE IF EXISTS moved',
  ].join(';\n')

/** Returns the names of all tables except the mark. */
export const tablesIn = (database: SqliteConnection): readonly string[] =>
  namesIn(database, "type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'moved'")

const namesIn = (database: SqliteConnection, condition: string): readonly string[] =>
  (database.prepare(`SELECT name FROM sqlite_schema WHERE ${condition}`).all() as Row[]).map(({ name }) =>
    String(name),
  )

/** Returns undefined if the file has no mark. */
export const readMark = (path: string, busyTimeoutMs = 0): MovedMark | undefined =>
  existsSync(path) ? withDatabase(path, busyTimeoutMs, markIn) : undefined

/** Reads the mark in an open database. Returns undefined if it has no mark. */
export function markIn(database: SqliteConnection): MovedMark | undefined {
  const [table] = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'moved'")
    .all()
  if (table === undefined) return undefined
  return (database.prepare('SELECT id, database, state FROM moved').all() as Row[])[0] as
    | MovedMark
    | undefined
}

/**
 * Throws `RushesError` (usage) if the data was moved or is being moved. Removes the mark of a migration that ended
 * before it moved the data.
 */
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
    // Reads the mark again under the lock: the migration may have continued since the first read.
    const last = markIn(database)
    const hasContinued = last !== undefined && last.state !== 'copying'
    database.exec(hasContinued ? 'ROLLBACK' : 'DROP TABLE IF EXISTS moved; COMMIT')
    if (hasContinued) throw explainMark(path, last)
  })
}

/** Explains an error that the mark caused. Returns undefined for other errors. */
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
    'Use it there (--database). To use this folder again: `rushes admin migrate --from <folder> --undo` (docs/operations.md).',
  )
}

/** Locks the folder's database while its rows are copied, and marks it when they are moved. */
export interface SourceLock {
  /**
   * Blocks writes of other processes, which can still read. Waits up to 10 s for a process that writes, then throws the
   * database's error. Throws `RushesError` (usage) if the data was moved.
   */
  hold(): void
  /** Blocks all writes until `undo`, even after this process ends. */
  seal(): void
  /**
   * Marks the data as moved, after PostgreSQL has committed. If this fails, the data stays sealed, and the next
   * migration completes the move. Throws `RushesError` (usage) if the mark of this move was removed.
   */
  complete(): void
  /**
   * Call it if nothing was moved: removes the mark of this move. If this fails, the mark stays, as with `complete`.
   * Does not remove the mark of another move.
   */
  undo(): void
  close(): void
}

export function createSourceLock(
  source: Pick<OpenDatabase, 'path' | 'isCurrent'>,
  move: Pick<MovedMark, 'id' | 'database'>,
): SourceLock {
  const { path } = source
  // A second connection, because `source` reads at the same time.
  const lock = connect(path)
  lock.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA synchronous = FULL`)

  /** Reads the mark in a write transaction, so that the mark cannot change until the transaction ends. */
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

  /**
   * Runs `change` and returns true. Returns false if the mark does not belong to this move. Ignores errors: the mark
   * then stays as it is.
   */
  function changeOwnMark(change: () => void): boolean {
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
      // Locks and checks again: another process may have changed the mark since the commit.
      refuseMarked()
    },
    seal: () => mark('committing'),
    complete() {
      if (!changeOwnMark(() => mark('moved')))
        throw usageError(
          `The data of ${path} was moved to ${move.database}, but its mark was removed meanwhile: both can be changed.`,
          'Use only one of them. To use the database, stop what uses the folder and remove the folder.',
        )
    },
    undo: () => void changeOwnMark(() => lock.exec(`${unmarkStatements(lock)}; COMMIT`)),
    close() {
      // Rolls back first: statements that are not garbage-collected yet would keep the lock.
      rollBack(lock)
      lock.close()
    },
  }
}
