/** The network: undici's connection pools and proxies behind `Fetch`. */
import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
// Single files: all of undici, with its cache, fetch, web sockets and mocks, takes more than twice as long to load. Their paths
// are not a public interface, so package.json names one exact version.
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
  readonly clock: Pick<Clock, 'alarm' | 'monotonic'>
  /** Resolves host names, and may refuse one. Not called for IP addresses. */
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
      // A dispatcher that could not be created has nothing to close.
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
  // EnvHttpProxyAgent would send requests for 127.0.0.1 to the proxy.
  if (direct || (named('HTTP_PROXY') === '' && named('HTTPS_PROXY') === '')) return new Agent(options)
  const proxy = (name: string) => named(name) && proxyAddress(name, named(name))
  const [{ default: EnvHttpProxyAgent }, { default: api }] = await Promise.all([
    import('undici/lib/dispatcher/env-http-proxy-agent.js'),
    import('undici/lib/api/index.js'),
  ])
  // The agent opens a tunnel by `connect`, which undici's main file adds.
  Object.assign(UndiciDispatcher.prototype, api)
  return new EnvHttpProxyAgent({
    ...options,
    clientFactory: createProxyPool,
    httpProxy: proxy('HTTP_PROXY'),
    httpsProxy: proxy('HTTPS_PROXY'),
    noProxy: named('NO_PROXY'),
  })
}

/** Like curl, takes an address without a protocol as http. The error does not show the value: it may hold a password. */
function proxyAddress(name: string, value: string): string {
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`
  if (URL.canParse(address) && /^(https?|socks5?):$/.test(new URL(address).protocol)) return address
  throw new HttpFailure(`${name} is no address of a proxy, such as http://proxy.example:3128`, {
    sent: false,
  })
}
