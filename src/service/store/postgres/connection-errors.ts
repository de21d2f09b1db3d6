/** Classifies errors of the driver and of the server, and explains those of connections. No message contains a password. */
import { messageOf, RushesError, usageError } from '../../../errors.js'
import { describeError, errorCode, textField } from '../../../host/system-error.js'

/** Host, port and database of the URL, without user and password. */
export function nameOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  return `postgres://${host || 'localhost'}${port === '' ? '' : `:${port}`}${pathname}`
}

const EXAMPLE = 'Example: --database postgres://user:password@db.example.com:5432/rushes'

/** Throws `RushesError` (usage) if this is not the URL of a PostgreSQL database. */
export function checkUrl(url: string): void {
  const isValid =
    URL.canParse(url) &&
    /^postgres(ql)?:$/.test(new URL(url).protocol) &&
    // Without this check, messages could print a part of the password: an unescaped `/` makes it part of the path.
    /^\/?[^/@]*$/.test(new URL(url).pathname) &&
    new URL(url).hash === ''
  if (!isValid)
    throw usageError(
      'The database URL (--database or RUSHES_DATABASE_URL) is not a valid PostgreSQL URL.',
      `${EXAMPLE}. Characters such as @, / and # in a password are written %40, %2F and %23.`,
    )
  if (new URL(url).pathname.length < 2)
    throw usageError('The database URL (--database or RUSHES_DATABASE_URL) names no database.', EXAMPLE)
}

/**
 * Returns the URL for the driver. The driver's next version will verify less in some modes, and warns about each of them. Here
 * every mode but these two verifies everything.
 */
export function driverUrl(url: string): string {
  const changed = new URL(url)
  if (!/^(disable|no-verify)$/.test(changed.searchParams.get('sslmode') ?? 'disable'))
    changed.searchParams.set('sslmode', 'verify-full')
  return changed.href
}

/** What to do about a failed connection, by the error's code and text. The first that matches counts. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^3D000/, 'Create it first: `CREATE DATABASE <name>`.'],
  [/^42501/, 'Grant it: `GRANT CREATE ON DATABASE <name> TO <user>`.'],
  [/^25006/, 'Use the primary server.'],
  [
    /SSL|certificate|self-signed/i,
    'Add sslrootcert=<file> to the URL, with the certificate of the authority of the server. ' +
      'sslmode=no-verify encrypts, but does not check who answers.',
  ],
  [/^28|SASL|password/, 'Check user and password in the URL, and pg_hba.conf of the server.'],
  [/./, 'Check host and port in the URL, and whether the server runs and accepts connections.'],
]

/** Returns undefined if the error is not about a connection. */
export function explainConnection(url: string, error: unknown): RushesError | undefined {
  if (error instanceof RushesError) return undefined
  // If a host has several addresses, each fails with an error.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const text = `${errorCode(first) ?? ''} ${messageOf(first)}`
  // A certificate or key file that the URL names.
  const path = textField(first, 'syscall') === 'open' ? textField(first, 'path') : undefined
  if (path === undefined && !isConnectionLost(first) && !/SSL|certificate|SASL|timeout/i.test(text))
    return undefined
  const hint =
    path === undefined
      ? HINTS.find(([pattern]) => pattern.test(text))?.[1]
      : 'Check sslrootcert, sslcert and sslkey in the URL.'
  const reason = describeError(first, path)
  return new RushesError('usage', `${nameOf(url)} cannot be used: ${reason}.`, { hint, cause: error })
}

/** Error codes of the network. */
const SOCKET_CODES =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)UNREACH|E(HOST|NET)DOWN|ENOTFOUND|EAI_AGAIN|ENOENT)$/

/**
 * Error codes of the server (PostgreSQL documentation, Appendix A). 08: connection error; 57P: the server is stopping
 * or starting; 53300: too many connections; 25006: the server is a read-only replica since a failover, and the next
 * connection may reach the primary. 25P03: the server ended a transaction that was idle for too long. 28, 3D000, 42501:
 * the login, the database or its rights were changed, and an administrator may be about to complete the change.
 */
const SERVER_CODES = /^(08...|57P0[1-5]|53300|25006|25P03|28...|3D000|42501)$/

/** Errors for which the driver has no code. */
const DRIVER_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying|Query read timeout|Client (has encountered|was closed)|Cannot use a pool)/

/** Whether the connection is unusable or could not be established. */
export function isConnectionLost(error: unknown): boolean {
  const code = errorCode(error) ?? ''
  return (
    SOCKET_CODES.test(code) ||
    SERVER_CODES.test(code) ||
    (error instanceof Error && code === '' && DRIVER_MESSAGES.test(error.message))
  )
}

/**
 * Removes the fields of a server's error that quote rows and parameters: logs must not contain emails, hashes or
 * prompts.
 */
export function forgetValues(error: unknown): void {
  if (error instanceof Error) for (const field of QUOTING) Reflect.deleteProperty(error, field)
}
const QUOTING = ['detail', 'where', 'internalQuery'] as const

/** Deadlock or serialization failure: the transaction was rolled back, and can be retried at once. */
export const isSerializationFailure = (error: unknown): boolean =>
  /^40(001|P01)$/.test(errorCode(error) ?? '')

/** Disk, memory or lock table full; timeout of a lock or statement; or I/O error of the server. */
export const isOverloaded = (error: unknown): boolean =>
  /^(53...|55P03|57014|58...)$/.test(errorCode(error) ?? '')
