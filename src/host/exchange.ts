/**
 * Sends one request and reads its response with undici's `dispatch`. undici's `request` is not enough: its
 * `headersTimeout` also runs while the body is sent, so 40 MB on a slow line would end with an unknown outcome; it does
 * not report whether a byte was sent; and if a connection breaks, it drops received data unless a reader was waiting.
 */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import undiciErrors from 'undici/lib/core/errors.js'
import { onAbort } from './abort.js'
import type { Clock, Disarm } from './clock.js'
import { HttpFailure, type HttpResponse, type ServerRequest } from './http.js'
import { errorCode, textField } from './system-error.js'

/** Timeout from the last byte sent to the head of the response, and between two chunks of a body. */
export const SILENCE_TIMEOUT_MS = 60_000
/** Grace period for a response after the process was suspended. */
export const GRACE_AFTER_SUSPENSION_MS = 10_000
/** A timer that fires later than this was delayed by a suspension. */
const MAX_LATENESS_MS = 2_000
const CHUNK_BYTES = 65_536
/** Maximum number of chunks (up to 64 KiB each) that wait for the reader. Then the connection is paused. */
const MAX_WAITING_CHUNKS = 8

/** Resolves with the head of the response. Rejects with the reason of the request's signal, or an `HttpFailure`. */
export const exchange = (
  request: ServerRequest,
  dispatcher: Dispatcher,
  clock: Clock,
): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const { signal } = request
    if (signal?.aborted) return reject(signal.reason)

    const startedAtMs = clock.now()
    let controller: Dispatcher.DispatchController | undefined
    let sent = false
    let isOver = false
    let failure: { readonly error: unknown } | undefined
    const silence = createTimer(clock, SILENCE_TIMEOUT_MS, () => {
      const cause = new Error(`no response for ${SILENCE_TIMEOUT_MS / 1_000} s`)
      stop(new HttpFailure(cause.message, { sent, cause }))
    })
    const forget = onAbort(signal, () => stop(signal?.reason))
    const received = new Readable({
      // In object mode, waiting chunks are not copied into one chunk.
      objectMode: true,
      highWaterMark: MAX_WAITING_CHUNKS,
      read() {
        if (controller?.paused !== true) return
        silence.restart()
        controller.resume()
      },
      destroy(error, done) {
        stop(new Error('the rest of the body was discarded'))
        done(error)
      },
    })

    /** Yields all received chunks, then throws the failure, if any. */
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for await (const chunk of received) yield chunk
      if (failure !== undefined) throw failure.error
    }
    function end(): boolean {
      if (isOver) return false
      isOver = true
      silence.stop()
      forget()
      return true
    }
    function fail(error: unknown): void {
      if (!end()) return
      failure = { error }
      received.push(null)
      // `reject` has no effect if the head has already arrived.
      reject(error)
    }
    function stop(error: unknown): void {
      if (isOver) return
      fail(error)
      // The controller is undefined while undici has no connection. In this case `onRequestStart` aborts the request.
      controller?.abort(error instanceof Error ? error : new Error(String(error)))
    }
    const failed = (error: unknown) => fail(asHttpFailure(error, sent))
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started
        if (isOver) return started.abort(new Error('the request was aborted'))
        if (request.fresh && clock.now() - startedAtMs > CONNECT_TIMEOUT_MS + MAX_LATENESS_MS)
          return stop(new HttpFailure(TOO_LATE, { sent, code: 'UND_ERR_CONNECT_TIMEOUT' }))
        // undici now has a connection and will write the request. No byte was sent before.
        sent = true
        if (request.isSlow) silence.stop()
        else silence.restart()
      },
      onResponseStart(_, status, headers) {
        if (isOver || status < MIN_FINAL_STATUS) return
        silence.restart()
        resolve({ status, header: headerIn(headers), body: chunks(), discard: () => void received.destroy() })
      },
      onResponseData(_, chunk) {
        // undici emits an empty chunk when its parser resumes.
        if (isOver || chunk.byteLength === 0) return
        silence.restart()
        if (received.push(chunk)) return
        // Stop the timer: the server is not silent, but the reader is slow.
        silence.stop()
        controller?.pause()
      },
      onResponseEnd() {
        if (end()) received.push(null)
      },
      onResponseError: (_, error) => failed(error),
    }

    // Start the timer before the connection exists: undici waits five minutes for a proxy that never answers CONNECT.
    silence.restart()
    try {
      dispatcher.dispatch(optionsOf(request, request.isSlow ? () => {} : silence.restart), handler)
    } catch (error) {
      failed(error)
    }
  })

/** Responses with a lower status (1xx) come before the final response. */
const MIN_FINAL_STATUS = 200

const headerIn =
  (headers: Readonly<Record<string, string | string[] | undefined>>): HttpResponse['header'] =>
  (name) => {
    const value = headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }

const optionsOf = (
  { url, method, headers, body, stream }: ServerRequest,
  onProgress: () => void,
): Dispatcher.DispatchOptions => {
  const bytes = stream?.bytes ?? body?.byteLength
  return {
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method,
    headers: {
      'accept-encoding': 'identity',
      ...headers,
      ...(bytes !== undefined && { 'content-length': String(bytes) }),
    },
    body: stream
      ? iterable(withProgress(stream.chunks(), onProgress))
      : body === undefined || body.byteLength <= CHUNK_BYTES
        ? (body ?? null)
        : iterable(withProgress(chunksOf(body), onProgress)),
  }
}

/** undici accepts iterables according to its documentation, but not according to its types. */
const iterable = (body: AsyncIterable<Uint8Array>) => body as unknown as Uint8Array

function* chunksOf(body: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < body.byteLength; offset += CHUNK_BYTES)
    yield body.subarray(offset, offset + CHUNK_BYTES)
}

/** Reports each chunk, so that a body that is still being sent does not time out. */
async function* withProgress(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  onProgress: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    onProgress()
    yield chunk
  }
  onProgress()
}

/** Timer that detects suspensions: if it fires late, the process was suspended, and a grace period follows. */
function createTimer(clock: Clock, ms: number, onTimeout: () => void) {
  let disarm: Disarm = () => {}
  function start(durationMs: number): void {
    const dueMs = clock.monotonic() + durationMs
    disarm()
    disarm = clock.alarm(durationMs, () => {
      const isLate = clock.monotonic() - dueMs > MAX_LATENESS_MS
      if (isLate) start(GRACE_AFTER_SUSPENSION_MS)
      else onTimeout()
    })
  }
  return {
    restart: () => start(ms),
    stop: () => disarm(),
  }
}

/** Time for a connection, with all addresses of the host. */
export const CONNECT_TIMEOUT_MS = 10_000

/**
 * After a suspension: another process may have taken over what the request would create. Measured by the wall clock:
 * undici's own timer counts no time in which the process did not run, and on Linux the monotonic clock counts none in which
 * the machine slept.
 */
const TOO_LATE = `no connection within ${CONNECT_TIMEOUT_MS / 1_000} s`

const ERROR_TEXTS: Readonly<Record<string, string>> = {
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
  UND_ERR_CONNECT_TIMEOUT: TOO_LATE,
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the response are too large',
  UND_ERR_SOCKET: 'the connection was closed',
}

/** Parts of OpenSSL's codes for certificate errors, which have no common prefix. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER|_CRL|CRL_/

/** `sent`: whether a byte of the request may have been sent. */
function asHttpFailure(thrown: unknown, sent: boolean): HttpFailure {
  const error = innermost(thrown)
  const code = errorCode(error)
  const isInvalidHttp = isInvalid(error)
  const advice = certificateAdvice(code)
  return new HttpFailure(describe(error, code), { sent, code, isInvalidHttp, advice, cause: thrown })
}

function certificateAdvice(code = ''): string | undefined {
  if (/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/.test(code))
    return "Check this machine's clock. If it is right, the certificate of the server must be renewed."
  return /SELF_SIGNED|UNABLE_TO|ISSUER|UNTRUSTED|INVALID_CA/.test(code)
    ? 'This machine does not trust the certificate. For your own certificate authority, set NODE_EXTRA_CA_CERTS=<file>.'
    : undefined
}

/** If all addresses of a name fail, the error is an AggregateError without a message. */
const innermost = (error: unknown): unknown =>
  error instanceof AggregateError && error.errors.length > 0 ? innermost(error.errors[0]) : error

/** Whether the response is not valid HTTP. undici has no error class for an unexpected 101. */
const isInvalid = (error: unknown): boolean =>
  error instanceof undiciErrors.HTTPParserError ||
  error instanceof undiciErrors.HeadersOverflowError ||
  (error instanceof Error && error.message === 'bad upgrade')

function describe(error: unknown, code = ''): string {
  if (isInvalid(error) && code !== 'UND_ERR_HEADERS_OVERFLOW') return 'the response is not valid HTTP'
  const message = error instanceof Error ? error.message : ''
  if (/wrong version number|packet length too long/.test(message)) return 'the server does not use TLS'
  if (Object.hasOwn(ERROR_TEXTS, code)) return ERROR_TEXTS[code] ?? code
  // Node 24 adds advice about one of its flags, after a semicolon.
  if (CERTIFICATE.test(code)) return `the certificate is not trusted (${message.replace(/;.*/s, '')})`
  // OpenSSL's reason, such as `sslv3 alert handshake failure`.
  if (/^EPROTO$|^ERR_SSL_/.test(code)) return `TLS failed (${textField(error, 'reason') ?? code})`
  return message !== '' ? message : code || String(error)
}
