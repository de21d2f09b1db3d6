/**
 * One request and its answer, over undici's own calls and not its `request`, which wraps them in streams that take as long to
 * load as the rest of it. Timeouts are kept here: undici's `headersTimeout` runs while a body is still being sent, so 40 MB on
 * a slow line would end in it, and look like an outcome unknown.
 */
import type { Dispatcher } from 'undici'
import undiciErrors from 'undici/lib/core/errors.js'
import { onAbort } from './abort.js'
import type { Clock, Disarm } from './clock.js'
import { HttpFailure, type HttpRequest, type HttpResponse } from './http.js'
import { createInflow } from './inflow.js'

export const CONNECT_TIMEOUT_MS = 10_000
/** From the last byte sent to the head of the answer, and between two chunks of a body that moves. */
export const SILENCE_TIMEOUT_MS = 60_000
const CHUNK_BYTES = 65_536

/** Resolves with the head of the answer. Rejects with the reason of the request's signal, or an `HttpFailure`. */
export const exchange = (
  request: HttpRequest,
  dispatcher: Dispatcher,
  clock: Pick<Clock, 'alarm'>,
): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const { signal } = request
    if (signal?.aborted) return reject(signal.reason)

    let controller: Dispatcher.DispatchController | undefined
    const forget = onAbort(signal, () => stop(signal?.reason))
    let sent = false
    /** Nothing comes any more: the answer is whole, or it failed. */
    let over = false
    const watchdog = createWatchdog(clock, () => {
      const silence = new Error(`nothing moved for ${SILENCE_TIMEOUT_MS / 1_000} s`)
      stop(new HttpFailure(silence.message, { sent, cause: silence }))
    })
    const leave = () => stop(new Error('the rest is not wanted'))
    const inflow = createInflow({
      hold() {
        // Nothing moves because nobody takes it.
        watchdog.rest()
        controller?.pause()
      },
      goOn() {
        moved()
        controller?.resume()
      },
      leave,
    })

    function moved(): void {
      if (!over) watchdog.feed()
    }
    function end(): boolean {
      if (over) return false
      over = true
      watchdog.rest()
      forget()
      return true
    }
    function fail(error: unknown): void {
      if (!end()) return
      inflow.fail(error)
      // Without effect once there was a head.
      reject(error)
    }
    function stop(error: unknown): void {
      if (over) return
      fail(error)
      // Of a request that has no connection yet undici is told when it begins, before a byte of it.
      controller?.abort(asError(error))
    }
    const failed = (error: unknown) =>
      fail(new HttpFailure(describe(error), { sent, code: codeOf(error), cause: error }))
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started
        if (over) return started.abort(new Error('no longer wanted'))
        // undici holds a connection and is about to write: before that, no byte has left.
        sent = true
        moved()
      },
      onResponseStart(_, status, headers) {
        if (over || status < FINAL_STATUS) return
        moved()
        resolve({
          status,
          header(name) {
            const value = headers[name.toLowerCase()]
            return Array.isArray(value) ? value.join(', ') : value
          },
          body: inflow.chunks,
          discard: leave,
        })
      },
      onResponseData(_, chunk) {
        if (over) return
        moved()
        inflow.push(chunk)
      },
      onResponseEnd() {
        if (end()) inflow.end()
      },
      onResponseError: (_, error) => failed(error),
    }

    // Before anything is sent too: undici gives a proxy that never answers CONNECT five minutes.
    moved()
    try {
      dispatcher.dispatch(optionsOf(request, moved), handler)
    } catch (error) {
      failed(error)
    }
  })

/** Below it an answer says only that there will be one. */
const FINAL_STATUS = 200

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)))

const optionsOf = (
  { url, method, headers, body }: HttpRequest,
  onMove: () => void,
): Dispatcher.DispatchOptions => ({
  origin: url.origin,
  path: `${url.pathname}${url.search}`,
  method,
  headers: body === undefined ? headers : { ...headers, 'content-length': String(body.byteLength) },
  body:
    body === undefined || body.byteLength <= CHUNK_BYTES ? (body ?? null) : iterable(chunksOf(body, onMove)),
})

/** undici takes what can be iterated, which its documentation says and its types do not. */
const iterable = (body: AsyncIterable<Uint8Array>) => body as unknown as Uint8Array

/** In pieces, so that a body that still moves can be told from one that stands still. */
async function* chunksOf(body: Uint8Array, onMove: () => void): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < body.byteLength; offset += CHUNK_BYTES) {
    onMove()
    yield body.subarray(offset, offset + CHUNK_BYTES)
  }
  onMove()
}

/** A timer that is wound up again whenever something moves. */
function createWatchdog(clock: Pick<Clock, 'alarm'>, bark: () => void) {
  let disarm: Disarm = () => {}
  return {
    feed(): void {
      disarm()
      disarm = clock.alarm(SILENCE_TIMEOUT_MS, bark)
    },
    rest(): void {
      disarm()
    },
  }
}

/** A failed attempt on several addresses is an AggregateError without a message of its own. */
const innermost = (error: unknown): unknown =>
  error instanceof AggregateError && error.errors.length > 0 ? innermost(error.errors[0]) : error

const codeOf = (error: unknown): string | undefined => {
  const code = (innermost(error) as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

function describe(error: unknown): string {
  const inner = innermost(error)
  if (inner instanceof undiciErrors.ConnectTimeoutError)
    return `no connection within ${CONNECT_TIMEOUT_MS / 1_000} s`
  if (codeOf(inner) === 'ENOTFOUND') return 'the name of the host was not found'
  if (codeOf(inner) === 'ECONNREFUSED') return 'the connection was refused'
  return inner instanceof Error && inner.message !== '' ? inner.message : String(codeOf(inner) ?? inner)
}
