/** How the service reports internal errors: one line each, without keys and prompts. */
import type { Clock } from '../../host/clock.js'
import { describeError, describeReason, errorCode, textField } from '../../host/system-error.js'

const DATABASE_GONE =
  'The database was removed, replaced or overwritten: creates are refused. ' +
  'Stop the service, restore a backup (docs/operations.md), and start it.'

/** Every write and renewal fails while the database or the disk cannot be used. */
const REPEAT_MS = 60_000

/** Gets the line of an error, and its stack. */
export type WriteLog = (line: string, stack?: string) => void

export function createErrorLog(write: WriteLog, clock: Clock): (error: unknown) => void {
  let unusableAtMs = Number.NEGATIVE_INFINITY
  return (error) => {
    if (!isDiskUnusable(error)) {
      const stack = error instanceof Error ? error.stack : undefined
      return write(describeError(error, textField(error, 'path')), stack)
    }
    if (clock.monotonic() - unusableAtMs < REPEAT_MS) return
    unusableAtMs = clock.monotonic()
    const isGone = errorCode(error) === 'SQLITE_READONLY_DBMOVED'
    write(isGone ? DATABASE_GONE : `The database or the disk cannot be used: ${describeReason(error)}.`)
  }
}

/** Error codes of SQLite with its extensions (such as SQLITE_IOERR_WRITE), of PostgreSQL, and of file systems. */
const UNUSABLE_CODES = [
  /^SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|INTERRUPT|IOERR|LOCKED|NOMEM|NOTADB|PERM|PROTOCOL|READONLY)/,
  /^DATABASE_UNAVAILABLE$/,
  /^(EACCES|EDQUOT|EIO|EMFILE|ENFILE|ENODEV|ENOMEM|ENOSPC|ENOTCONN|ENXIO|EROFS|ESTALE)$/,
]

/** Whether the database or disk is locked, full, damaged or unreachable. The same operation may succeed later. */
export const isDiskUnusable = (error: unknown): boolean => {
  const code = errorCode(error) ?? ''
  return UNUSABLE_CODES.some((pattern) => pattern.test(code))
}
