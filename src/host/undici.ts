/** The network: undici's connection pools and proxies behind `Fetch`. */
import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
// Single files: all of undici, with its cache, fetch, web sockets and mocks, takes more than twice as long to load. Their paths
// are not a public interface, so package.json names one exact version.
import Agent from 'undici/lib/dispatcher/agent.js'
import UndiciDispatcher from 'undici/lib/dispatcher/dispatcher.js'
import type { Clock } from './clock.js'
import { exchange } from './exchange.js'
import { CONNECT_TIMEOUT_MS } from './failure-text.js'
import { type Fetch, type HttpRequest, isLoopback } from './http.js'
import { findProxy, noProxy } from './proxy.js'
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
