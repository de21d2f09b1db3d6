/** Internal errors: to the caller of the service, and to its structured log. */
import { errorCode } from '../host/system-error.js'
import { RendererCrashed } from './engines/renderer-crashed.js'
import type { Log } from './log.js'

const DATABASE_GONE =
  'the database was removed, replaced or overwritten: creates are refused. Stop the service, restore a backup (docs/backup.md), and start it'

export function createErrorLog(
  log: (line: object | string) => void,
  events: () => Log,
): (error: unknown) => void {
  let isGoneReported = false

  /** Once: every heartbeat meets it again. */
  function reportGone(): void {
    if (isGoneReported) return
    isGoneReported = true
    log(DATABASE_GONE)
    events().error({}, DATABASE_GONE)
  }

  return (error) => {
    if (errorCode(error) === 'SQLITE_READONLY_DBMOVED') return reportGone()
    log(error instanceof Error ? error : String(error))
    if (error instanceof RendererCrashed) events().warn({ reason: error.message }, 'renderer crashed')
    else events().error({ err: error }, 'internal error')
  }
}
