/**
 * Adds faults to any `Fetch`, by the clock of the test. The language is that of `serve --fault`; what only a test needs is
 * added to it: `<where>:<what>[:<detail>][:<times>]`, such as `output:cut:1000:2`.
 *
 *     const fetch = withFaults(service.fetch, ['create:lose:1'], service.clock)
 *     expect((await runCli(['run', 'image', 'a fox'], { fetch })).code).toBe(13)
 *     expect(fetch.reached('create')).toBe(1)
 */
import { STATUS_CODES } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Clock } from '../../src/host/clock.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../../src/host/http.js'
import { problemOf } from '../../src/protocol/problems.js'
import { parseDuration } from '../../src/protocol/units.js'
import { responseOf } from './responses.js'

type Place = 'create' | 'status' | 'output'

interface Seen {
  readonly place: Place | undefined
  readonly atMs: number
  /** Whether the service received the request, and so may have acted on it. */
  reached: boolean
}

export interface FaultyFetch extends Fetch {
  /** All requests, in order. */
  readonly seen: readonly Seen[]
  /** Number of requests of this kind that the service received. */
  reached(place: Place): number
  /** Faults that were applied. */
  readonly strikes: readonly string[]
}

interface Fault {
  readonly spec: string
  readonly where: string
  readonly what: string
  readonly detail: string
  left: number
}

/** Effects whose detail is a number, so that a last number alone is the detail. */
const WITH_BYTES = ['cut', 'hang', 'truncate', 'corrupt', 'expire']

function parse(spec: string): Fault {
  const [where = '', what = '', ...rest] = spec.replace(/^latency:/, 'any:latency:').split(':')
  const last = rest.at(-1) ?? ''
  const isTimes = /^\d+$/.test(last) && (rest.length > 1 || !WITH_BYTES.includes(what))
  const detail = rest.slice(0, isTimes ? -1 : undefined).join(':')
  return { spec, where, what, detail, left: isTimes ? Number(last) : Number.POSITIVE_INFINITY }
}

function placeOf(method: string, { pathname }: URL): Place | undefined {
  if (method === 'POST') return /\/runs$/.test(pathname) ? 'create' : undefined
  if (/\/runs\/[^/]+$/.test(pathname)) return 'status'
  return /\/outputs\//.test(pathname) ? 'output' : undefined
}

/** Timeout for a connection that transfers nothing, the same as on the real network (src/host/undici.ts). */
const SILENCE_MS = 60_000

export function withFaults(fetch: Fetch, specs: readonly string[], clock: Clock): FaultyFetch {
  const faults = specs.map(parse)
  const seen: Seen[] = []
  const strikes: string[] = []
  const lasting = createLastingEffects()
  function take(where: string): Fault | undefined {
    const fault = faults.find(
      (each) => each.left > 0 && (each.where === where || (each.where === 'any' && where !== 'run')),
    )
    if (fault === undefined || (fault.what === 'close' && seen.length === 1)) return undefined
    fault.left--
    strikes.push(fault.spec)
    return fault
  }
  const faulty: Fetch = async (request) => {
    request.signal?.throwIfAborted()
    const { method, url } = request
    const place = placeOf(method, url)
    const noted = { place, atMs: clock.monotonic(), reached: false }
    seen.push(noted)
    const ask = async (): Promise<HttpResponse> => {
      noted.reached = true
      return await fetch(request)
    }
    if (place === undefined) return await ask()
    const expired = lasting.expired(url)
    if (expired !== undefined) return errorResponse(expired)
    const fault = take(place)
    if (fault?.what === 'expire') return errorResponse(lasting.expire(url, Number(fault.detail || '410')))
    const sleep = (ms: number) => clock.sleep(ms, request.signal)
    const answer = await answerOf(
      fault,
      place,
      async () => {
        const response = await ask()
        if (place === 'create') return lasting.noteRun(response, () => take('run'))
        return place === 'status' ? lasting.rewrite(response, url) : response
      },
      sleep,
    )
    if (fault?.what === 'latency') await sleep(parseDuration(fault.detail, fault.spec))
    return answer
  }
  const reached = (place: Place) => seen.filter((each) => each.place === place && each.reached).length
  return Object.assign(faulty, { seen, strikes, reached })
}

const lost = (message: string) => new HttpFailure(message, { sent: true, code: 'ECONNRESET' })

async function answerOf(
  fault: Fault | undefined,
  place: Place,
  ask: () => Promise<HttpResponse>,
  sleep: (ms: number) => Promise<void>,
): Promise<HttpResponse> {
  const { what = '', detail = '' } = fault ?? {}
  const silence = async (): Promise<never> => {
    await sleep(SILENCE_MS)
    throw lost(`no response for ${SILENCE_MS / 1_000} s`)
  }
  const reset = async (): Promise<never> => {
    throw lost('the connection was reset')
  }
  const withBody = async (change: (body: HttpResponse['body'], length: number) => HttpResponse['body']) => {
    const response = await ask()
    return { ...response, body: change(response.body, Number(response.header('content-length') ?? 0)) }
  }
  if (/^\d+$/.test(what)) return errorResponse(Number(what), detail)
  switch (what) {
    case 'redirect':
      return responseOf({ status: 307, headers: { location: detail } })
    case 'reset':
    case 'close':
      return await reset()
    case 'lose':
      ;(await ask()).discard()
      return await reset()
    case 'stall':
      return await silence()
    case 'nonsense':
      ;(await ask()).discard()
      return detail === 'empty'
        ? responseOf({ status: 200, headers: { 'content-type': 'application/json' } })
        : responseOf({
            status: place === 'create' ? 201 : 200,
            headers: { 'content-type': 'text/html' },
            body: '<h1>Please sign in</h1>',
          })
    case 'cut':
      return await withBody((body) => firstBytes(body, Number(detail), reset))
    case 'hang':
      return await withBody((body) => firstBytes(body, Number(detail), silence))
    case 'truncate':
      return await withBody((body, length) => firstBytes(body, detail === '' ? length / 2 : Number(detail)))
    case 'corrupt':
      return await withBody((body) => inverted(body))
    case 'slow':
      return await withBody((body) => throttled(body, Number(detail), sleep))
    default:
      return await ask()
  }
}

function errorResponse(status: number, code = ''): HttpResponse {
  const message = problemOf(code)?.cause ?? STATUS_CODES[status] ?? 'injected'
  const body = { error: { message, ...(code !== '' && { code }) } }
  return responseOf({ status, headers: { 'content-type': 'application/json; charset=utf-8' }, body })
}

/** Yields the first `bytes` bytes, or the whole body if it is shorter; then awaits `next()`. */
async function* firstBytes(
  body: HttpResponse['body'],
  bytes: number,
  next: () => Promise<void> = async () => {},
): AsyncGenerator<Uint8Array> {
  let left = Math.floor(bytes)
  for await (const chunk of body) {
    if (left > 0) yield chunk.subarray(0, left)
    left -= chunk.byteLength
    if (left <= 0) break
  }
  await next()
}

async function* inverted(body: HttpResponse['body']): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) yield chunk.map((byte) => byte ^ 0xff)
}

async function* throttled(
  body: HttpResponse['body'],
  bytesPerSecond: number,
  sleep: (ms: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body)
    for (let at = 0; at < chunk.byteLength; at += bytesPerSecond) {
      await sleep(1_000)
      yield chunk.subarray(at, at + bytesPerSecond)
    }
}

/** Links that have expired, which a later status replaces, and runs that the API shows as failed or never ended. */
function createLastingEffects() {
  const links = new Map<string, number>()
  const runs = new Map<string, Fault>()
  const renewed = (address: string): string => {
    const url = new URL(address)
    for (let number = 2; links.has(url.pathname + url.search); number++)
      url.searchParams.set('link', `${number}`)
    return url.href
  }
  const jsonOf = async ({ body }: HttpResponse) => JSON.parse((await buffer(body)).toString())
  const changed = (response: HttpResponse, run: unknown): HttpResponse => {
    const { body } = responseOf({ status: 200, body: run })
    return { ...response, body, header: (name) => (/length/i.test(name) ? undefined : response.header(name)) }
  }
  return {
    expired: (url: URL) => links.get(url.pathname + url.search),
    expire(url: URL, status: number): number {
      links.set(url.pathname + url.search, status)
      return status
    },
    async noteRun(response: HttpResponse, takeEffect: () => Fault | undefined): Promise<HttpResponse> {
      const effect = response.status === 201 ? takeEffect() : undefined
      if (effect === undefined) return response
      const run = await jsonOf(response)
      runs.set(run.id, effect)
      return changed(response, run)
    },
    async rewrite(response: HttpResponse, { pathname }: URL): Promise<HttpResponse> {
      const effect = runs.get(pathname.split('/').at(-1) ?? '')
      if (response.status !== 200 || (effect === undefined && links.size === 0)) return response
      const run = await jsonOf(response)
      const isOver = run.status === 'succeeded'
      if (isOver && effect?.what === 'never')
        return changed(response, { ...run, status: 'processing', output: null, finished_at: null })
      const error = { code: 'render_failed', message: effect?.detail || 'The service injected this fault.' }
      if (isOver && effect !== undefined)
        return changed(response, { ...run, status: 'failed', output: null, error })
      return changed(response, run.output ? { ...run, output: { urls: run.output.urls.map(renewed) } } : run)
    },
  }
}
