/** Explains connection errors: the reason, and how to fix it. A message never contains a password. */
import { messageOf, RushesError, usageError } from '../../../errors.js'
import { describeError, errorCode } from '../../../host/system-error.js'

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
  const mode = new URL(url).searchParams.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode))
    throw usageError(
      `The database URL has the unknown sslmode "${mode}".`,
      `Use one of ${SSL_MODES.join(', ')}. All of the last four check the certificate and the name of the server.`,
    )
}

const SSL_MODES: readonly string[] = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']
const VERIFYING = SSL_MODES.slice(2)

/**
 * Returns the URL for the driver. The driver's next version will verify less in some of these modes, and warns about
 * each of them. Here all of them verify everything.
 */
export function driverUrl(url: string): string {
  const changed = new URL(url)
  if (VERIFYING.includes(changed.searchParams.get('sslmode') ?? ''))
    changed.searchParams.set('sslmode', 'verify-full')
  return changed.href
}

const REASONS: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ECONNREFUSED: ['connection refused', 'Check host and port, and whether the server runs and listens there.'],
  ENOTFOUND: ['no such host', 'Check the name of the host.'],
  EAI_AGAIN: ['the name of the host could not be looked up', 'Check the name of the host, and the DNS.'],
  ENOENT: ['no server listens on this socket', 'Check the path of the socket, and whether the server runs.'],
  EHOSTUNREACH: ['the host cannot be reached', 'Check the host, and the network.'],
  ENETUNREACH: ['the network cannot be reached', 'Check the host, and the network.'],
  ETIMEDOUT: ['no answer', 'Check host and port, and firewalls between.'],
  '28P01': ['wrong user or password', 'Check both in the URL.'],
  '28000': ['the server does not accept this user', 'Check the user, and pg_hba.conf of the server.'],
  '3D000': ['the database does not exist', 'Create it first: `CREATE DATABASE <name>`.'],
  '42501': ['the user may not connect', 'Grant it: `GRANT CONNECT ON DATABASE <name> TO <user>`.'],
  '53300': ['it has too many connections', 'Raise max_connections of the server, or run fewer nodes.'],
  '57P03': ['the server is starting or stopping', 'Try again in a moment.'],
}

/** Returns undefined if the error is not about a connection. */
export function explainConnection(url: string, error: unknown): RushesError | undefined {
  const known = describeFile(error) ?? describeMessage(messageOf(error)) ?? REASONS[codeOf(error)]
  if (known === undefined || error instanceof RushesError) return undefined
  const [reason, hint] = known
  return new RushesError('usage', `${nameOf(url)} cannot be used: ${reason}.`, { hint, cause: error })
}

/** Explains an error about a certificate or key file that the URL names. */
function describeFile(error: unknown): readonly [string, string] | undefined {
  const { syscall, path = '' } = error as NodeJS.ErrnoException
  if (syscall !== 'open') return undefined
  return [describeError(error, path), 'Check sslrootcert, sslcert and sslkey in the URL.']
}

/** If a host has several addresses, each fails with an error. Returns the code of the first. */
const codeOf = (error: unknown): string =>
  errorCode(error) ?? (error instanceof AggregateError ? (errorCode(error.errors[0]) ?? '') : '')

function describeMessage(message: string): readonly [string, string] | undefined {
  if (/no encryption|no pg_hba\.conf entry.*SSL off/i.test(message))
    return ['the server accepts only encrypted connections', 'Add sslmode=verify-full to the URL.']
  if (/timeout|Connection terminated/.test(message))
    return ['no answer', 'Check host and port, and firewalls between.']
  if (/SASL|password must be a string/i.test(message))
    return ['the server asks for a password', 'Add it to the URL.']
  if (/SSL|certificate|self-signed/i.test(message))
    return [
      `TLS: ${message}`,
      'Add sslrootcert=<file> to the URL, with the certificate of the authority of the server. ' +
        'sslmode=no-verify encrypts, but does not check who answers.',
    ]
  return undefined
}

/** Classifies errors of the driver and of the server. */

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
