/** Internal errors: to the caller of the service, and to its structured log. */
import { FolderNotRemoved, FolderReplaced } from '../host/own-folder.js'
import { describeReason, errorCode } from '../host/system-error.js'
import { isDiskUnusable } from './disk-unusable.js'
import { RendererCrashed } from './engines/renderer-crashed.js'
import { StorageUnavailable } from './files/storage-unavailable.js'
import type { Log } from './log.js'

const DATABASE_GONE =
  'the database was removed, replaced or overwritten: creates are refused. Stop the service, restore a backup (docs/backup.md), and start it'

const UNUSABLE = 'the database or the disk cannot be written'

interface Circumstances {
  readonly events: Log
  isClosing(): boolean
}

export function createErrorLog(
  log: (line: object | string) => void,
  { events, isClosing }: Circumstances,
): (error: unknown) => void {
  let isGoneReported = false
  let isUnusableReported = false

  /** Once: every heartbeat meets it again. */
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
      // On closing, each write that is given up would say the same.
      isUnusableReported = isClosing()
      events.error({ reason: describeReason(error) }, UNUSABLE)
    } else events.error({ err: error }, 'internal error')
  }
}
