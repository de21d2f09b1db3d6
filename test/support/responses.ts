/** Responses without a network, and errors. */
import { expect } from 'vitest'
import { type Fetch, HttpFailure, type HttpRequest, type HttpResponse } from '../../src/host/http.js'

export interface Scripted {
  readonly status: number
  /** Objects travel as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The connection ends after the body's bytes, or the body fails with this error. */
  readonly cut?: boolean | Error
}

const bytesOf = (body: unknown): Uint8Array => {
  if (body === undefined) return new Uint8Array()
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

export function responseOf({ status, body, headers = {}, cut = false }: Scripted): HttpResponse {
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return {
    status,
    header: (name) => lower.get(name.toLowerCase()),
    body: (async function* () {
      const bytes = bytesOf(body)
      if (bytes.byteLength > 0) yield bytes
      if (cut instanceof Error) throw cut
      if (cut) throw new HttpFailure('the body was cut', { sent: true, code: 'ECONNRESET' })
    })(),
    discard() {},
  }
}

/** An error is thrown in place of a response. `hang` never responds. */
export type Step = Scripted | Error | 'hang' | ((request: HttpRequest) => Scripted)

export interface ScriptedService {
  readonly fetch: Fetch
  readonly requests: readonly HttpRequest[]
}

/** Responds to one request after another, and then repeats the last step. */
export function scriptedList(...steps: readonly Step[]): ScriptedService {
  const requests: HttpRequest[] = []
  return {
    requests,
    async fetch(request) {
      const step = steps[Math.min(requests.length, steps.length - 1)] ?? { status: 500 }
      requests.push(request)
      if (step instanceof Error) throw step
      if (step !== 'hang') return responseOf(typeof step === 'function' ? step(request) : step)
      return await new Promise((_, reject) => {
        request.signal?.addEventListener('abort', () => reject(request.signal?.reason))
      })
    },
  }
}

/** The error with which a promise rejects. A promise that does not reject fails the test. */
// biome-ignore lint/suspicious/noExplicitAny: the tests look into errors of every shape
export const rejection = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => expect.unreachable('it did not reject'),
    (error) => error,
  )
