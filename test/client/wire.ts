/** A service as a script: one answer a request, in order, and what was asked of it and when. */

import { ApiClient, type ClientOptions } from '../../src/client/index.js'
import { HttpFailure } from '../../src/host/http.js'
import { Limiter } from '../../src/limiter/index.js'
import {
  createManualClock,
  type ManualClock,
  type Scripted,
  type ScriptedService,
  type Step,
  scriptedList,
} from '../support/index.js'

export { rejection, type Step } from '../support/index.js'

export const BASE_URL = 'https://api.test/prefix'
export const KEY = 'sk-test-0123456789-secret'

export interface Wire extends ScriptedService {
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
  const { fetch, requests } = scriptedList(...steps, ...(forever ? [] : [new Error('one request too many')]))
  const atMs: number[] = []
  return {
    requests,
    atMs,
    async fetch(request) {
      request.signal?.throwIfAborted()
      atMs.push(clock.monotonic())
      return await fetch(request)
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
