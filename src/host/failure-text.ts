/** What undici and the system throw, as an `HttpFailure` with a message for people. */
import undiciErrors from 'undici/lib/core/errors.js'
import { HttpFailure } from './http.js'

export const CONNECT_TIMEOUT_MS = 10_000

const TEXTS: Readonly<Record<string, string>> = {
  EAI_AGAIN: 'the host name could not be looked up, because DNS did not answer',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EHOSTDOWN: 'the host is down',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'the host name was not found',
  EPIPE: 'the connection was closed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host name',
  ETIMEDOUT: 'the connection timed out',
  UND_ERR_CONNECT_TIMEOUT: `no connection within ${CONNECT_TIMEOUT_MS / 1_000} s`,
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the response are too large',
  UND_ERR_SOCKET: 'the connection was closed',
}

/** OpenSSL's codes for a certificate, which have no prefix of their own. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER|_CRL|CRL_/

/** `sent`: whether a byte of the request may have been sent. */
export function asHttpFailure(thrown: unknown, sent: boolean): HttpFailure {
  const error = innermost(thrown)
  const code = codeOf(error)
  const isInvalidHttp = isInvalid(error)
  return new HttpFailure(describe(error, code), { sent, code, isInvalidHttp, cause: thrown })
}

/** When every address of a name fails, the error is an AggregateError without a message. */
const innermost = (error: unknown): unknown =>
  error instanceof AggregateError && error.errors.length > 0 ? innermost(error.errors[0]) : error

const codeOf = (error: unknown): string | undefined => {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** undici has no class for a 101 that was not asked for. */
const isInvalid = (error: unknown): boolean =>
  error instanceof undiciErrors.HTTPParserError ||
  error instanceof undiciErrors.HeadersOverflowError ||
  (error instanceof Error && error.message === 'bad upgrade')

function describe(error: unknown, code = ''): string {
  if (isInvalid(error) && code !== 'UND_ERR_HEADERS_OVERFLOW') return 'the response is not valid HTTP'
  const message = error instanceof Error ? error.message : ''
  const [, status] = /^Proxy response \((\d+)\)/.exec(message) ?? []
  if (status === '407') return 'the proxy requires a user name and a password (407)'
  if (status !== undefined) return `the proxy refused the connection (${status})`
  if (/wrong version number|packet length too long/.test(message)) return 'the server does not use TLS'
  if (Object.hasOwn(TEXTS, code)) return TEXTS[code] ?? code
  // Node 24 adds advice about a flag of its own, after a semicolon.
  if (CERTIFICATE.test(code)) return `the certificate is not trusted (${message.replace(/;.*/s, '')})`
  if (/^EPROTO$|^ERR_SSL_/.test(code)) return `TLS failed (${reasonOf(error) ?? code})`
  return message !== '' ? message : code || String(error)
}

/** OpenSSL's own words, such as `sslv3 alert handshake failure`. */
const reasonOf = (error: unknown): string | undefined => {
  const reason = (error as { reason?: unknown } | undefined)?.reason
  return typeof reason === 'string' ? reason : undefined
}
