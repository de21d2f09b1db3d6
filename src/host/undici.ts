/** Sends HTTP requests with undici's connection pools, directly or through a proxy, behind the type `Fetch`. */
import type { LookupFunction, Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import type { Dispatcher } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
// Import single files: all of undici, with its cache, fetch, web sockets and mocks, takes more than twice as long to
// load. The paths of these files are not a public interface, so package.json names one exact version.
import Agent from 'undici/lib/dispatcher/agent.js'
import UndiciDispatcher from 'undici/lib/dispatcher/dispatcher.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { Clock } from './clock.js'
import { CONNECT_TIMEOUT_MS, exchange } from './exchange.js'
import { findProxy, isLoopback, noProxy, type ServerFetch, type ServerRequest } from './http.js'

const FRESH_IDLE_MS = 1_000
const POLLING_IDLE_MS = 10_000
/** Time for one of several addresses of a host. After Node's default of 250 ms, many far hosts have not answered. */
const ADDRESS_TIMEOUT_MS = 3_000

export interface Network {
  readonly fetch: ServerFetch
  /** Closes idle connections, so that the process can end. */
  close(): Promise<void>
}

export interface NetworkOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** Resolves host names, and may reject a name. Not called for IP addresses. */
  readonly lookup?: LookupFunction
}

/** `fetch` throws `usage` if the proxy setting for the address is invalid. */
export function createNetwork({ env, clock, lookup }: NetworkOptions): Network {
  const dispatchers = new Map<string, Promise<Dispatcher>>()

  function dispatcherFor({ url, fresh }: ServerRequest): Promise<Dispatcher> {
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
      // `allSettled`, because a dispatcher that could not be created needs no closing.
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
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS,
    ...(lookup && { lookup }),
  }
  const options: Agent.Options = {
    connect,
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
  // The agent opens a tunnel with `connect`, a method that undici's main file adds.
  Object.assign(UndiciDispatcher.prototype, api)
  return new EnvHttpProxyAgent({
    ...options,
    // Options of the connection to the proxy, also without TLS.
    proxyTls: connect,
    clientFactory: createProxyPool,
    httpProxy: proxy.href,
    httpsProxy: proxy.href,
    noProxy: noProxy(env),
  })
}

// Workarounds for three bugs in undici 7: a crash when a connection ends while its parser is paused
// (nodejs/undici#5360, fixed in undici 8, which needs Node 22; 7.30.2 still has it), `100 Continue` as an error, and
// endless requests to a proxy.

/** The used members of undici's parser. */
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
  /** Returns 1 if the response has no body. */
  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number
  execute(chunk: Uint8Array): void
  /** Called when the connection ends. Returns the error of the response. */
  finish(): Error | null
}

const EMPTY = Buffer.alloc(0)

/**
 * Replaces `finish`. If the parser is paused, the original throws where no code can catch the error, and the process
 * crashes. Reads the rest of the socket first. If only the end of the connection marks the end of the response, a
 * broken connection does not complete it.
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
  // The bytes that were just read completed the response.
  if (this.statusCode === 0 || this.ptr === null) return null
  if (this.socket.errored) return this.socket.errored
  // Node reports some broken connections as ended. Such a connection no longer has a remote address.
  return this.socket.remoteAddress === undefined ? new Error('the connection broke') : finish.call(this)
}

function resume(parser: Parser): void {
  if (!parser.paused || parser.ptr === null) return
  parser.llhttp.llhttp_resume(parser.ptr)
  parser.paused = false
}

/**
 * Replaces `onHeadersComplete`, which closes the connection on a `100 Continue`. A client must ignore a `100 Continue`
 * that it did not ask for (RFC 9110, 15.2): the answer to a create comes after it.
 */
function skipContinue(
  this: Parser,
  onHeadersComplete: Parser['onHeadersComplete'],
  ...head: [status: number, upgrade: boolean, keepAlive: boolean]
): number {
  const [status] = head
  if (status !== 100 || this.socket.destroyed) return onHeadersComplete.apply(this, head)
  this.statusCode = status
  this.headers = []
  this.headersSize = 0
  return 1
}

const patched = new WeakSet<object>()

/**
 * Patches the parser's prototype. undici does not export its parser, so the prototype is taken from the first
 * connection.
 */
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

/** Creates a pool with a patched parser; for the `factory` option of undici's agents. */
export const createPool = (origin: string | URL, options: object): Dispatcher =>
  new Pool(origin, options).on('connect', (_, targets) => patchParserOf(targets.at(-1)))

/**
 * Creates a pool of connections to a proxy. If a proxy closes the connection instead of opening a tunnel, undici treats
 * the connection as stale and retries without end, but not after an error without a code.
 */
function createProxyPool(origin: string | URL, options: object): Dispatcher {
  const pool = createPool(origin, options)
  const connect = pool.connect.bind(pool)
  return Object.assign(pool, {
    connect: (target: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> =>
      connect(target).catch((cause: unknown) => {
        throw new Error('no connection to the proxy', { cause })
      }),
  })
}

/**
 * Makes V8 compile WebAssembly only with its fast compiler, in the whole process: use it in the command line, never in
 * the library. undici's parser is WebAssembly, and the process cannot end before V8's optimizing compiler has finished:
 * that takes longer than the rest of `rushes status`.
 */
export const skipWasmOptimization = (): void => setFlagsFromString('--liftoff-only')
