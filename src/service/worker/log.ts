/** The service's log, and how it reports internal errors. */
import { FolderNotRemoved, FolderReplaced } from '../../host/own-folder.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import { RendererCrashed } from '../engines/engine.js'
import { StorageUnavailable } from '../files/contract.js'

/** Each entry has fields and a message. It never contains a key or a prompt. */
export interface Log {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
  debug(fields: object, message: string): void
}

export const silentLog: Log = { error() {}, warn() {}, info() {}, debug() {} }

const DATABASE_GONE =
  'the database was removed, replaced or overwritten: creates are refused. ' +
  'Stop the service, restore a backup (docs/operations.md), and start it'

const UNUSABLE = 'the database or the disk cannot be written'

/** Reports internal errors to `log`, which the creator of the service passes, and to the structured log (`events`). */
export function createErrorLog(
  log: (line: object | string) => void,
  { events, isClosing }: { readonly events: Log; isClosing(): boolean },
): (error: unknown) => void {
  let isGoneReported = false
  let isUnusableReported = false

  /** Reports it only once, since every heartbeat fails with the same error. */
  function reportGone(): void {
    if (isGoneReported) return
    isGoneReported = true
    log(DATABASE_GONE)
    events.error({}, DATABASE_GONE)
  }

  return (error) => {
    if (errorCode(error) === 'SQLITE_READONLY_DBMOVED') return reportGone()
    log(error instanceof Error ? error : String(error))
    if (error instanceof RendererCrashed) events.warn({ reason: error.message }, 'renderer crashed')
    else if (error instanceof FolderReplaced || error instanceof FolderNotRemoved)
      events.warn({ folder: error.path, reason: error.message }, 'a folder was left as it is')
    else if (error instanceof StorageUnavailable)
      events.error({ reason: error.message }, 'the storage cannot be used')
    else if (isDiskUnusable(error)) {
      if (isUnusableReported) return
      // While the service closes, report it only once: every abandoned write fails with it.
      isUnusableReported = isClosing()
      events.error({ reason: describeReason(error) }, UNUSABLE)
    } else events.error({ err: error }, 'internal error')
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
