/** What an error of the driver or of the server means. */
import { errorCode } from '../../../host/system-error.js'

/** Of the network. */
const SOCKET_CODES =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ENOTFOUND|EAI_AGAIN|ENOENT)$/

/**
 * Of the server (docs: Appendix A). 08: connection; 57P: it is stopping or starting; 53300: it has too many connections; 25006: it
 * is a read-only replica since a failover, and the next connection may reach the primary. 28, 3D000, 42501: the login, the
 * database or its rights were changed, which an administrator may be about to complete.
 */
const SERVER_CODES = /^(08...|57P0[1-5]|53300|25006|28...|3D000|42501)$/

/** The driver has no codes for these. */
const DRIVER_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after calling end)/

/** A statement that is prepared on this connection returns other columns now (0A000: cached plan must not change result type). */
export const isPlanStale = (error: unknown): boolean => errorCode(error) === '0A000'

/** The connection cannot be used any more, or there is none. */
export function isConnectionLost(error: unknown): boolean {
  const code = errorCode(error) ?? ''
  return (
    isPlanStale(error) ||
    SOCKET_CODES.test(code) ||
    SERVER_CODES.test(code) ||
    (error instanceof Error && code === '' && DRIVER_MESSAGES.test(error.message))
  )
}

/** Removes the fields of a server's error in which it quotes rows and parameters: emails, hashes and prompts, which no log may have. */
export function forgetValues(error: unknown): void {
  if (error instanceof Error) for (const field of QUOTING) Reflect.deleteProperty(error, field)
}
const QUOTING = ['detail', 'where', 'internalQuery'] as const

/** Deadlock or serialization failure: the transaction was undone, and can be repeated at once. */
export const isUndone = (error: unknown): boolean => /^40(001|P01)$/.test(errorCode(error) ?? '')

/** The disk, the memory or the lock table is full; a lock or a statement took too long; an I/O error of the server. */
export const isOverloaded = (error: unknown): boolean =>
  /^(53...|55P03|57014|58...)$/.test(errorCode(error) ?? '')
