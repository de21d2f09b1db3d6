/**
 * One request and its response, over undici's `dispatch`. Its `request` would not do: `headersTimeout` runs while a body is
 * still being sent, so 40 MB on a slow line would end with an unknown outcome; it cannot tell whether a byte was sent; and
 * what had arrived when a connection broke is dropped unless somebody was already reading.
 */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { onAbort } from './abort.js'
import type { Clock, Disarm } from './clock.js'
import { asHttpFailure } from './failure-text.js'
import { HttpFailure, type HttpRequest, type HttpResponse } from './http.js'

/** From the last byte sent to the head of the response, and between two chunks of a body. */
export const SILENCE_TIMEOUT_MS = 60_000
/** For an answer to arrive after the process was suspended. */
export const GRACE_AFTER_SUSPENSION_MS = 10_000
/** A timeout that comes later than this was held up by a suspension. */
const MAX_LATENESS_MS = 2_000
const CHUNK_BYTES = 65_536
/** Of up to 64 KiB. When as many wait for their reader, the connection is paused. */
const MAX_WAITING_CHUNKS = 8

/** Resolves with the head of the response. Rejects with the reason of the request's signal, or an `HttpFailure`. */
export const exchange = (
  request: HttpRequest,
  dispatcher: Dispatcher,
  clock: Pick<Clock, 'alarm' | 'monotonic'>,
): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const { signal } = request
    if (signal?.aborted) return reject(signal.reason)

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
      // Otherwise waiting chunks would be copied into one.
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

    /** A failure is thrown after all that arrived before it. */
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
      // No effect after the head.
      reject(error)
    }
    function stop(error: unknown): void {
      if (isOver) return
      fail(error)
      // Undefined while undici has no connection: `onRequestStart` aborts it then.
      controller?.abort(error instanceof Error ? error : new Error(String(error)))
    }
    const failed = (error: unknown) => fail(asHttpFailure(error, sent))
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started
        if (isOver) return started.abort(new Error('the request was aborted'))
        // undici has a connection and writes next; no byte was sent before.
        sent = true
        silence.restart()
      },
      onResponseStart(_, status, headers) {
        if (isOver || status < MIN_FINAL_STATUS) return
        silence.restart()
        resolve({
          status,
          header(name) {
            const value = headers[name.toLowerCase()]
            return Array.isArray(value) ? value.join(', ') : value
          },
          body: chunks(),
          discard: () => void received.destroy(),
        })
      },
      onResponseData(_, chunk) {
        // Resuming undici's parser gives an empty chunk.
        if (isOver || chunk.byteLength === 0) return
        silence.restart()
        if (received.push(chunk)) return
        // A reader that is slow is not a silent server.
        silence.stop()
        controller?.pause()
      },
      onResponseEnd() {
        if (end()) received.push(null)
      },
      onResponseError: (_, error) => failed(error),
    }

    // Runs before the connection too: undici gives a proxy that never answers CONNECT five minutes.
    silence.restart()
    try {
      dispatcher.dispatch(optionsOf(request, silence.restart), handler)
    } catch (error) {
      failed(error)
    }
  })

/** 1xx responses come before the final one. */
const MIN_FINAL_STATUS = 200

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

/** undici accepts iterables: its documentation says so, its types do not. */
const iterable = (body: AsyncIterable<Uint8Array>) => body as unknown as Uint8Array

/** In pieces, so that progress is seen: a body that still moves has no time limit. */
async function* chunksOf(body: Uint8Array, onMove: () => void): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < body.byteLength; offset += CHUNK_BYTES) {
    onMove()
    yield body.subarray(offset, offset + CHUNK_BYTES)
  }
  onMove()
}

/** The time in which the process was suspended counts as one timeout at most: then there is a grace period. */
function createTimer(clock: Pick<Clock, 'alarm' | 'monotonic'>, ms: number, onTimeout: () => void) {
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
