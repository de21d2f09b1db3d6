/** The real network: connections, and proxies, of undici behind `Fetch`. */
import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
// Its parts and not the whole, which has a cache, fetch, web sockets and mocks, and takes more than twice as long to load.
import Agent from 'undici/lib/dispatcher/agent.js'
import UndiciDispatcher from 'undici/lib/dispatcher/dispatcher.js'
import type { Clock } from './clock.js'
import { CONNECT_TIMEOUT_MS, exchange } from './exchange.js'
import { type Fetch, HttpFailure, type HttpRequest, isLoopback } from './http.js'
import { createPool, createProxyPool } from './undici-faults.js'

const FRESH_IDLE_MS = 1_000
const POLLING_IDLE_MS = 10_000

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
    fetch: async (request) => exchange(request, await dispatcherFor(request), clock),
    close: async () => {
      const closing = [...dispatchers.values()].map(async (dispatcher) => (await dispatcher).destroy())
      // One that could not be made has nothing to close.
      await Promise.allSettled(closing)
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
    factory: createPool,
  }
  const named = (name: string) => env[name.toLowerCase()] || env[name] || ''
  // EnvHttpProxyAgent would send 127.0.0.1 through the proxy, so loopback never reaches it.
  if (direct || (named('HTTP_PROXY') === '' && named('HTTPS_PROXY') === '')) return new Agent(options)
  const proxy = (name: string) => named(name) && proxyAddress(name, named(name))
  const [{ default: EnvHttpProxyAgent }, { default: api }] = await Promise.all([
    import('undici/lib/dispatcher/env-http-proxy-agent.js'),
    import('undici/lib/api/index.js'),
  ])
  // The tunnel is asked for by `connect`, which the package as a whole puts there.
  Object.assign(UndiciDispatcher.prototype, api)
  return new EnvHttpProxyAgent({
    ...options,
    clientFactory: createProxyPool,
    httpProxy: proxy('HTTP_PROXY'),
    httpsProxy: proxy('HTTPS_PROXY'),
    noProxy: named('NO_PROXY'),
  })
}

/** As curl reads it: what names no protocol is spoken to by http. The words are not shown, as a password may be in them. */
function proxyAddress(name: string, words: string): string {
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(words) ? words : `http://${words}`
  if (URL.canParse(address) && /^(https?|socks5?):$/.test(new URL(address).protocol)) return address
  throw new HttpFailure(`${name} is no address of a proxy, such as http://proxy.example:3128`, {
    sent: false,
  })
}
