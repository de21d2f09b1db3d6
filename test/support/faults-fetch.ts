/** Adds faults to any `Fetch`, without a port and with the clock of the test. */
import type { Clock } from '../../src/host/clock.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../../src/host/http.js'
import {
  ConnectionReset,
  type FaultOutcome,
  type FaultResponse,
} from '../../src/service/faults/apply-fault.js'
import { createControl, type FaultControl } from './faults-control.js'

/** Timeout for a connection that transfers nothing, the same as on the real network (src/host/undici.ts). */
const SILENCE_MS = 60_000

export type FaultyFetch = Fetch & FaultControl

/** Wraps a `Fetch`. The fault `close` applies from the second request on. */
export function withFaults(fetch: Fetch, specs: readonly string[], clock: Clock): FaultyFetch {
  const { control, faults, note } = createControl(specs, clock)
  const faulty: Fetch = async (request) => {
    request.signal?.throwIfAborted()
    const { method, url } = request
    const path = `${url.pathname}${url.search}`
    const noted = note(method, path)
    const ask = (): Promise<HttpResponse> => {
      noted.reached = true
      return fetch(request)
    }
    const encounter = faults.intercept({ method, path, reused: control.seen.length > 1 })
    if (encounter === undefined) return ask()
    const stall = async (): Promise<never> => {
      await clock.sleep(SILENCE_MS, request.signal)
      throw lost(`no response for ${SILENCE_MS / 1_000} s`)
    }
    const outcome = await encounter.respond({
      signal: request.signal ?? new AbortController().signal,
      ask: async () => answerOfResponse(await ask()),
      readUpload: async () => {},
      stall,
    })
    return outcome.kind === 'stall' ? stall() : responseOf(outcome)
  }
  return Object.assign(faulty, control)
}

/**
 * Response headers that a client of the service reads. They are listed here because a response cannot list its headers.
 */
const HEADERS = [
  'content-type',
  'content-length',
  'content-encoding',
  'content-range',
  'accept-ranges',
  'etag',
  'last-modified',
  'location',
  'retry-after',
]

const answerOfResponse = (response: HttpResponse): FaultResponse => ({
  status: response.status,
  headers: Object.fromEntries(
    HEADERS.flatMap((name) => {
      const value = response.header(name)
      return value === undefined ? [] : [[name, value]]
    }),
  ),
  body: response.body,
  discard: () => response.discard(),
})

const lost = (message: string) => new HttpFailure(message, { sent: true, code: 'ECONNRESET' })

function responseOf(outcome: Exclude<FaultOutcome, { kind: 'stall' }>): HttpResponse {
  if (outcome.kind === 'noise') throw lost('the response is not valid HTTP')
  if (outcome.kind !== 'answer') throw lost('the connection was closed')
  const { status, headers, body, discard } = outcome.answer
  return { status, header: (name) => headers[name.toLowerCase()], body: overWire(body), discard }
}

async function* overWire(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw error instanceof ConnectionReset ? lost('the connection was reset') : error
  }
}
