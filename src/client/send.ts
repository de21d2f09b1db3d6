/** Wrappers of one function type that every API request passes through. */
import { messageOf, RushesError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { type Fetch, HttpFailure, type HttpRequest } from '../host/http.js'

/** What the client needs of a limiter. */
export interface RateLimiter {
  acquire(purpose: 'create' | 'status', signal?: AbortSignal): Promise<{ settle(): void }>
  holdBack(ms: number): void
  load(): number
}

export type Trace = (line: string) => void

type Wrapper = (send: Fetch) => Fetch

/** The last wrapper is the outermost and runs first. */
export const pipe = (fetch: Fetch, ...wrappers: readonly Wrapper[]): Fetch =>
  wrappers.reduce((send, wrap) => wrap(send), fetch)

/** What a `Fetch` of others throws beside its `HttpFailure`: something may have been sent. */
export const withHttpFailures: Wrapper = (send) => async (request) => {
  try {
    return await send(request)
  } catch (error) {
    if (request.signal?.aborted || error instanceof HttpFailure || error instanceof RushesError) throw error
    throw new HttpFailure(messageOf(error), { sent: true, cause: error })
  }
}

/** The key goes to the API's own origin alone. */
export const withKey =
  (apiKey: string, origin: string): Wrapper =>
  (send) =>
  (request) =>
    request.url.origin === origin
      ? send({ ...request, headers: { ...request.headers, authorization: `Bearer ${apiKey}` } })
      : send(request)

/** A slot of the limit is held from the grant until the head of the answer; `beforeSend` runs between the grant and the request. */
export const withLimit =
  (limiter: RateLimiter, purpose: 'create' | 'status', beforeSend?: () => void | Promise<void>): Wrapper =>
  (send) =>
  async (request) => {
    const slot = await limiter.acquire(purpose, request.signal)
    try {
      await beforeSend?.()
      return await send(request)
    } finally {
      slot.settle()
    }
  }

/** One line out and one line back; the key is added further in and never seen here. */
export const withTrace =
  (trace: Trace | undefined, clock: Pick<Clock, 'monotonic'>): Wrapper =>
  (send) =>
  async (request) => {
    if (trace === undefined) return send(request)
    trace(`> ${describe(request)}`)
    const started = clock.monotonic()
    const took = () => `${Math.round(clock.monotonic() - started)} ms`
    try {
      const response = await send(request)
      trace(`< ${response.status} ${request.url.pathname} (${took()})`)
      return response
    } catch (error) {
      trace(`! ${messageOf(error)} ${request.url.pathname} (${took()})`)
      throw error
    }
  }

const describe = ({ method, url, body }: HttpRequest): string =>
  `${method} ${url.origin}${url.pathname}${body === undefined ? '' : ` (${body.byteLength} bytes)`}`
