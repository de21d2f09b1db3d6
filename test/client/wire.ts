/** A service as a script: one answer a request, in order, and what was asked of it and when. */

import { ApiClient, type ClientOptions } from '../../src/client/index.js'
import { type Fetch, HttpFailure, type HttpRequest } from '../../src/host/http.js'
import { Limiter } from '../../src/limiter/index.js'
import { createManualClock, type ManualClock, responseOf, type Scripted } from '../support/index.js'

export const BASE_URL = 'https://api.test/prefix'
export const KEY = 'sk-test-0123456789-secret'

/** `hang` never answers; an error is thrown in place of an answer. */
export type Step = Scripted | Error | 'hang'

export interface Wire {
  readonly fetch: Fetch
  readonly requests: readonly HttpRequest[]
  /** Instants by the monotonic clock. */
  readonly atMs: readonly number[]
}

export const lost = (message = 'the connection was reset') =>
  new HttpFailure(message, { sent: true, code: 'ECONNRESET' })
export const unconnected = (message = 'the connection was refused') =>
  new HttpFailure(message, { sent: false, code: 'ECONNREFUSED' })
export const problem = (
  status: number,
  code: string | undefined,
  headers: Record<string, string> = {},
): Scripted => ({
  status,
  headers,
  body: { error: { ...(code !== undefined && { code }), message: `${code ?? 'something'} happened` } },
})

/** The last step answers whatever follows when `forever`. */
export function createWire(
  clock: Pick<ManualClock, 'monotonic'>,
  steps: readonly Step[],
  { forever = false } = {},
): Wire {
  const requests: HttpRequest[] = []
  const atMs: number[] = []
  return {
    requests,
    atMs,
    async fetch(request) {
      request.signal?.throwIfAborted()
      const step = steps[forever ? Math.min(requests.length, steps.length - 1) : requests.length]
      requests.push(request)
      atMs.push(clock.monotonic())
      if (step === undefined) throw new Error(`request ${requests.length} is one too many`)
      if (step instanceof Error) throw step
      if (step !== 'hang') return responseOf(step)
      return await new Promise((_, reject) => {
        request.signal?.addEventListener('abort', () => reject(request.signal?.reason))
      })
    },
  }
}

export interface Bench extends Wire {
  readonly client: ApiClient
  readonly clock: ManualClock
  /** What was traced. */
  readonly lines: readonly string[]
}

export interface BenchOptions extends Partial<Omit<ClientOptions, 'clock' | 'fetch'>> {
  readonly forever?: boolean
}

/** A client at one end of the wire, under a limiter of its own. */
export function createBench(
  steps: readonly Step[],
  { forever = false, ...options }: BenchOptions = {},
): Bench {
  const clock = createManualClock()
  const wire = createWire(clock, steps, { forever })
  const lines: string[] = []
  const client = new ApiClient({
    baseUrl: BASE_URL,
    apiKey: KEY,
    limiter: new Limiter(clock),
    trace: (line) => lines.push(line),
    ...options,
    clock,
    fetch: wire.fetch,
  })
  return { ...wire, client, clock, lines }
}

/** The error that a promise rejects with; fails the test when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('was expected to reject')
}
