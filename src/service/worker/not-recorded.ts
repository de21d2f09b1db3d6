/** Runs whose end the database refuses to record: a damaged row, a constraint, a bug. */
import { errorCode } from '../../host/system-error.js'
import type { RunFailure } from '../stored-run.js'

/** Its render may have succeeded, so it is not refunded. `admin verify` names it, by this code. */
export const NOT_RECORDED: RunFailure = {
  code: 'not_recorded',
  message:
    'The service could not record how this run ended. Its credits were not refunded; ask the owner of the service for them.',
}

/** How often it is tried before; takes half a minute. */
export const MAX_REFUSALS = 10

/** Not so when the disk is full, another process has locked the database, or it cannot be reached: that is waited for. */
export const isRefusal = (error: unknown): boolean =>
  !/^(SQLITE_(BUSY|FULL|IOERR|LOCKED)|DATABASE_UNAVAILABLE$)/.test(errorCode(error) ?? '')
