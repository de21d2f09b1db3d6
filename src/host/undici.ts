/** The network: undici's connection pools and proxies behind `Fetch`. */
import type { LookupFunction, Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import type { Dispatcher } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
// Single files: all of undici, with its cache, fetch, web sockets and mocks, takes more than twice as long to load. Their paths
// are not a public interface, so package.json names one exact version.
import Agent from 'undici/lib/dispatcher/agent.js'
import UndiciDispatcher from 'undici/lib/dispatcher/dispatcher.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { Clock } from './clock.js'
import { CONNECT_TIMEOUT_MS, exchange } from './exchange.js'
import { type Fetch, findProxy, type HttpRequest, isLoopback, noProxy } from './http.js'

const FRESH_IDLE_MS = 1_000
const POLLING_IDLE_MS = 10_000

export interface Network {
  readonly fetch: Fetch
  /** Closes idle connections, so that the process can end. */
  close(): Promise<void>
}

export interface NetworkOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Pick<Clock, 'alarm' | 'monotonic'>
  /** Resolves host names, and may refuse one. Not called for IP addresses. */
  readonly lookup?: LookupFunction
}

/** `fetch` throws `usage` for an address whose proxy setting is invalid. */
export function createNetwork({ env, clock, lookup }: NetworkOptions): Network {
  const dispatchers = new Map<string, Promise<Dispatcher>>()

  function dispatcherFor({ url, fresh }: HttpRequest): Promise<Dispatcher> {
    const proxy = isLoopback(url.hostname) ? undefined : findProxy(env, url.protocol)
    const name = `${proxy?.href ?? 'direct'} ${fresh ? 'fresh' : 'kept'}`
    const dispatcher = dispatchers.get(name) ?? createDispatcher(proxy, fresh ?? false, env, lookup)
    dispatchers.set(name, dispatcher)
    return dispatcher
  }

  return {
    fetch: async (request) => exchange(request, await dispatcherFor(request), clock),
    close: async () => {
      const closing = [...dispatchers.values()].map(async (dispatcher) => (await dispatcher).destroy())
      // A dispatcher that could not be created has nothing to close.
      await Promise.allSettled(closing)
      dispatchers.clear()
    },
  }
}

async function createDispatcher(
  proxy: URL | undefined,
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
    factory: createPool,
  }
  if (proxy === undefined) return new Agent(options)
  const [{ default: EnvHttpProxyAgent }, { default: api }] = await Promise.all([
    import('undici/lib/dispatcher/env-http-proxy-agent.js'),
    import('undici/lib/api/index.js'),
  ])
  // The agent opens a tunnel by `connect`, which undici's main file adds.
  Object.assign(UndiciDispatcher.prototype, api)
  return new EnvHttpProxyAgent({
    ...options,
    clientFactory: createProxyPool,
    httpProxy: proxy.href,
    httpsProxy: proxy.href,
    noProxy: noProxy(env),
  })
}

// Workarounds for three faults of undici 7: a crash when a connection ends while its parser is paused (nodejs/undici#5360, fixed
// in undici 8, which needs Node 22; 7.30.2 still has it), `100 Continue` as an error, and endless requests to a proxy.

/** The parts of undici's parser that are used here. */
interface Parser {
  /** Null after the parser was destroyed. */
  readonly ptr: number | null
  readonly socket: Socket
  readonly llhttp: { llhttp_resume(ptr: number): void }
  paused: boolean
  /** 0 between two responses. */
  statusCode: number | null
  headers: readonly Uint8Array[]
  headersSize: number
  /** Returns 1 for a response without a body. */
  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number
  execute(chunk: Uint8Array): void
  /** Called when the connection ends. Returns the fault of the response. */
  finish(): Error | null
}

const EMPTY = Buffer.alloc(0)

/**
 * Replaces `finish`, which throws where nothing can catch it if the parser is paused: the process crashes. Reads the
 * rest of the socket first. A broken connection does not complete a response whose length only its end tells.
 */
function finishPaused(this: Parser, finish: Parser['finish']): Error | null {
  if (this.paused) {
    for (let chunk: Uint8Array | null = EMPTY; chunk !== null && this.ptr !== null; ) {
      chunk = this.socket.read()
      resume(this)
      this.execute(chunk ?? EMPTY)
    }
    resume(this)
  }
  // The bytes just read completed it.
  if (this.statusCode === 0 || this.ptr === null) return null
  if (this.socket.errored) return this.socket.errored
  // Node reports some broken connections as ended. They no longer have a remote address.
  return this.socket.remoteAddress === undefined ? new Error('the connection broke') : finish.call(this)
}

function resume(parser: Parser): void {
  if (!parser.paused || parser.ptr === null) return
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

/**
 * Replaces `onHeadersComplete`, which closes the connection on a `100 Continue`. A client has to expect one
 * although it did not ask for it, and ignore it (RFC 9110, 15.2).
 */
function skipContinue(
  this: Parser,
  onHeadersComplete: Parser['onHeadersComplete'],
  ...head: Parameters<Parser['onHeadersComplete']>
): number {
  const [status] = head
  if (status !== 100 || this.socket.destroyed) return onHeadersComplete.apply(this, head)
  this.statusCode = status
  this.headers = []
  this.headersSize = 0
  return 1
}

const patched = new WeakSet<object>()

/** undici does not export its parser: the prototype is found by the first connection. */
function patchParserOf(client: object | undefined): void {
  const socket: object | undefined = client && Reflect.get(client, symbols.kSocket)
  const parser: Parser | undefined = socket && Reflect.get(socket, symbols.kParser)
  const prototype: Parser | undefined = parser && Object.getPrototypeOf(parser)
  if (prototype === undefined || patched.has(prototype)) return
  patched.add(prototype)
  const { finish, onHeadersComplete } = prototype
  prototype.finish = function () {
    return finishPaused.call(this, finish)
  }
  prototype.onHeadersComplete = function (...head) {
    return skipContinue.call(this, onHeadersComplete, ...head)
  }
}

/** For the `factory` of undici's agents, instead of their default. */
export const createPool = (origin: string | URL, options: object): Dispatcher =>
  new Pool(origin, options).on('connect', (_, targets) => patchParserOf(targets.at(-1)))

/**
 * Connections to a proxy. When a proxy closes the connection instead of opening a tunnel, undici takes that for a stale
 * connection and tries again without end, so it gets another error.
 */
function createProxyPool(origin: string | URL, options: object): Dispatcher {
  const pool = createPool(origin, options)
  const connect = pool.connect.bind(pool)
  return Object.assign(pool, {
    connect: async (target: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
      try {
        return await connect(target)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'UND_ERR_SOCKET') throw error
        throw new Error('the proxy closed the connection', { cause: error })
      }
    },
  })
}

/**
 * Leaves WebAssembly to V8's fast compiler, for this whole process: for the command line, never for the library.
 * undici's parser is WebAssembly, and the process cannot end before V8's optimizing compiler has finished with it:
 * that takes longer than the rest of `rushes status`.
 */
export const skipWasmOptimization = (): void => setFlagsFromString('--liftoff-only')
