/** The real network: connections, and proxies, of undici behind `Fetch`. */
import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
// Its parts and not the whole, which has a cache, fetch, web sockets and mocks, and takes more than twice as long to load.
import Agent from 'undici/lib/dispatcher/agent.js'
import UndiciDispatcher from 'undici/lib/dispatcher/dispatcher.js'
import type { Clock } from './clock.js'
import { CONNECT_TIMEOUT_MS, exchange } from './exchange.js'
import { type Fetch, type HttpRequest, isLoopback } from './http.js'

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
  const [{ default: EnvHttpProxyAgent }, { default: api }] = await Promise.all([
    import('undici/lib/dispatcher/env-http-proxy-agent.js'),
    import('undici/lib/api/index.js'),
  ])
  // The tunnel is asked for by `connect`, which the package as a whole puts there.
  Object.assign(UndiciDispatcher.prototype, api)
  return new EnvHttpProxyAgent({ ...options, httpProxy, httpsProxy, noProxy: proxy('NO_PROXY') })
}
