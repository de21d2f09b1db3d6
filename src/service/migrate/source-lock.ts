/** Holds the database of the folder still while its rows are copied, and marks it when they are moved. */
import { usageError } from '../../errors.js'
import type { OpenDatabase } from '../../host/database.js'
import { BUSY_TIMEOUT_MS, connect, rollBack } from '../../host/database-file.js'
import { isBusy } from '../../host/system-error.js'
import { explainDatabaseError } from '../store/sqlite/database-errors.js'
import {
  explainMark,
  type MovedMark,
  markIn,
  markStatements,
  tablesIn,
  unmarkStatements,
} from '../store/sqlite/moved-mark.js'

export interface SourceLock {
  /**
   * Others read from now on, and nobody writes. Waits for a process that writes; throws `RushesError` (usage) when it has not ended
   * after 10 s, and when the data was moved.
   */
  hold(): void
  /** From now on nothing writes to the data until `undo`, also when this process ends. */
  seal(): void
  /**
   * PostgreSQL has committed. When it fails, the data stays sealed, and the next migration completes it. Throws `RushesError` (usage)
   * when the mark of this move was removed.
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
  // A connection of its own: `source` reads meanwhile.
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
      try {
        refuseMarked()
        mark('copying')
        // Another process may have come between.
        refuseMarked()
      } catch (error) {
        throw (isBusy(error) && explainDatabaseError(path, error)) || error
      }
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
