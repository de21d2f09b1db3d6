/**
 * The real network: undici behind `Fetch`. Timeouts are kept here and not by undici, whose `headersTimeout` runs
 * while a body is still being sent: 40 MB on a slow line would end in it, and look like an outcome unknown.
 */
import type { LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
// Its parts and not the whole, which has a cache, fetch, web sockets and mocks, and takes more than twice as long to load.
import apiRequest from 'undici/lib/api/api-request.js'
import undiciErrors from 'undici/lib/core/errors.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import type { Clock, Disarm } from './clock.js'
import { type Fetch, HttpFailure, type HttpRequest, type HttpResponse, isLoopback } from './http.js'

export const CONNECT_TIMEOUT_MS = 10_000
/** From the last byte sent to the head of the answer, and between two chunks of a body that moves. */
export const SILENCE_TIMEOUT_MS = 60_000
const FRESH_IDLE_MS = 1_000
const POLLING_IDLE_MS = 10_000
const CHUNK_BYTES = 65_536

export interface Network {
  readonly fetch: Fetch
  /** Closes idle connections, so that the process can end. */
  close(): Promise<void>
}

export interface NetworkOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Pick<Clock, 'alarm'>
  /** Resolves host names in place of the system; it may refuse one. Never asked about literal addresses. */
  readonly lookup?: LookupFunction
}

export function createNetwork({ env, clock, lookup }: NetworkOptions): Network {
  const dispatchers = new Map<string, Promise<Dispatcher>>()

  function dispatcherFor({ url, fresh }: HttpRequest): Promise<Dispatcher> {
    const direct = isLoopback(url.hostname)
    const name = `${direct ? 'direct' : 'proxied'} ${fresh ? 'fresh' : 'kept'}`
    const dispatcher = dispatchers.get(name) ?? createDispatcher(direct, fresh ?? false, env, lookup)
    dispatchers.set(name, dispatcher)
    return dispatcher
  }

  return {
    fetch: async (request) => await send(request, await dispatcherFor(request), clock),
    close: async () => {
      await Promise.all([...dispatchers.values()].map(async (dispatcher) => (await dispatcher).destroy()))
      dispatchers.clear()
    },
  }
}

async function createDispatcher(
  direct: boolean,
  fresh: boolean,
  env: NetworkOptions['env'],
  lookup: LookupFunction | undefined,
): Promise<Dispatcher> {
  const idleMs = fresh ? FRESH_IDLE_MS : POLLING_IDLE_MS
  const options: Agent.Options = {
    connect: { timeout: CONNECT_TIMEOUT_MS, ...(lookup && { lookup }) },
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 1,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
  }
  const proxy = (name: string) => env[name.toLowerCase()] || env[name] || ''
  const [httpProxy, httpsProxy] = [proxy('HTTP_PROXY'), proxy('HTTPS_PROXY')]
  // EnvHttpProxyAgent would send 127.0.0.1 through the proxy, so loopback never reaches it.
  if (direct || (httpProxy === '' && httpsProxy === '')) return new Agent(options)
  const [{ default: EnvHttpProxyAgent }, { default: Dispatcher }, { default: api }] = await Promise.all([
    import('undici/lib/dispatcher/env-http-proxy-agent.js'),
    import('undici/lib/dispatcher/dispatcher.js'),
    import('undici/lib/api/index.js'),
  ])
  // The tunnel is asked for by `connect`, which the package as a whole puts there.
  Object.assign(Dispatcher.prototype, api)
  return new EnvHttpProxyAgent({ ...options, httpProxy, httpsProxy, noProxy: proxy('NO_PROXY') })
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

type Watchdog = ReturnType<typeof createWatchdog>

async function send(
  request: HttpRequest,
  dispatcher: Dispatcher,
  clock: Pick<Clock, 'alarm'>,
): Promise<HttpResponse> {
  const silence = new AbortController()
  const watchdog = createWatchdog(clock, () =>
    silence.abort(new Error(`nothing moved for ${SILENCE_TIMEOUT_MS / 1_000} s`)),
  )
  const signal = request.signal ? AbortSignal.any([request.signal, silence.signal]) : silence.signal
  let sent = false
  // Wound up before anything is sent too: undici gives a proxy that never answers CONNECT five minutes.
  watchdog.feed()
  try {
    signal.throwIfAborted()
    const through = dispatcher.compose(
      tellingWhenSent(() => {
        if (signal.aborted) return
        sent = true
        watchdog.feed()
      }),
    )
    const asked = apiRequest.call(through, {
      origin: request.url.origin,
      path: `${request.url.pathname}${request.url.search}`,
      method: request.method,
      headers: withLength(request),
      body:
        request.body === undefined
          ? null
          : Readable.from(chunksOf(request.body, watchdog), { objectMode: false }),
      signal,
    })
    const answer = await unlessAborted(asked, signal, () => sent)
    watchdog.feed()
    return responseOf(answer, watchdog, request.signal)
  } catch (error) {
    watchdog.rest()
    throw failureOf(error, sent, request.signal, silence.signal)
  }
}

/**
 * undici heeds a signal only once a connection stands. Before that it is heeded here: undici then drops the request
 * without a byte of it.
 */
const unlessAborted = <Answer>(
  asked: Promise<Answer>,
  signal: AbortSignal,
  isSent: () => boolean,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const abort = () => {
      if (!isSent()) reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    asked.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })

const withLength = ({ headers, body }: HttpRequest): Record<string, string> =>
  body === undefined ? { ...headers } : { ...headers, 'content-length': String(body.byteLength) }

/** In pieces, so that a body that still moves can be told from one that stands still. */
async function* chunksOf(body: Uint8Array, watchdog: Watchdog): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < body.byteLength; offset += CHUNK_BYTES) {
    watchdog.feed()
    yield body.subarray(offset, offset + CHUNK_BYTES)
  }
  watchdog.feed()
}

/** undici starts a request when it holds a connection for it and is about to write: before that, no byte has left. */
const tellingWhenSent =
  (tell: () => void): Dispatcher.DispatcherComposeInterceptor =>
  (dispatch) =>
  (options, handler) =>
    dispatch(options, {
      onRequestStart(controller, context) {
        tell()
        handler.onRequestStart?.(controller, context)
      },
      onRequestUpgrade: (controller, status, headers, socket) =>
        handler.onRequestUpgrade?.(controller, status, headers, socket),
      onResponseStart: (controller, status, headers, message) =>
        handler.onResponseStart?.(controller, status, headers, message),
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
      onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
    })

function responseOf(
  answer: Dispatcher.ResponseData,
  watchdog: Watchdog,
  signal: AbortSignal | undefined,
): HttpResponse {
  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of answer.body) {
        watchdog.feed()
        yield chunk as Uint8Array
      }
    } catch (error) {
      throw failureOf(error, true, signal)
    } finally {
      watchdog.rest()
    }
  }
  return {
    status: answer.statusCode,
    header(name) {
      const value = answer.headers[name.toLowerCase()]
      return Array.isArray(value) ? value.join(', ') : value
    },
    body: body(),
    discard() {
      watchdog.rest()
      answer.body.on('error', () => {})
      answer.body.destroy()
    },
  }
}

/** The caller's own abort passes through as it is; everything else becomes an `HttpFailure`. */
function failureOf(error: unknown, sent: boolean, signal?: AbortSignal, silence?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason
  const cause = silence?.aborted ? silence.reason : error
  return new HttpFailure(describe(cause), { sent, code: codeOf(cause), cause })
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
