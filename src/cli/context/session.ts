/** Opens the App and its Session. Only this folder creates and connects the engines, when a command first needs them. */
import type { ApiClient } from '../../client/index.js'
import { type Clock, systemClock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import type { Interrupts } from '../../host/interrupts.js'
import type { Limiter } from '../../limiter/index.js'
import type { AddedModel } from '../../service/models/model-set.js'
import type { AskService, KnownModels } from '../models/known-models.js'
import type { Env, Io } from '../process/io.js'
import { ConfigFile } from '../settings/config-file.js'
import { foldersOf } from '../settings/folders.js'
import { once, openSettings, type Settings, type SettingsOptions } from '../settings/settings.js'
import type { Output } from '../terminal/output.js'
import type { App, Connection, ConnectOptions, Context, ReplaceableParts } from './context.js'

export interface AppOptions extends Io {
  readonly out: Output
  readonly interrupts: Interrupts
  readonly parts?: ReplaceableParts
}

export function openApp(options: AppOptions): App & { close(): Promise<void> } {
  const { parts = {}, env, out } = options
  const { clock = systemClock, random = Math.random, fileSystem } = parts
  const { config: configFolder, state: stateFolder } = foldersOf(env)
  const closers: (() => unknown)[] = []
  const openJournal = once(async () => {
    const { Journal } = await import('../../journal/index.js')
    const journal = new Journal({ folder: stateFolder, now: clock.now, warn: out.warn })
    closers.push(() => journal.close())
    return journal
  })
  return {
    ...options,
    ...{ parts, clock, random, configFolder, stateFolder, openJournal },
    config: new ConfigFile(configFolder),
    journal: async () => (await openJournal()).check(),
    fetch: once(async () => parts.fetch ?? (await openNetwork(env, clock))),
    async downloader(fetch) {
      const { createDownloader } = await import('../../download/index.js')
      return createDownloader({ fetch, clock, fileSystem })
    },
    onClose: (close) => void closers.push(close),
    async close() {
      for (const close of closers.splice(0).reverse()) await close()
    },
  }
}

async function openNetwork(env: Env, clock: Clock): Promise<Fetch> {
  const { createNetwork, skipWasmOptimization } = await import('../../host/undici.js')
  skipWasmOptimization()
  return createNetwork({ env, clock }).fetch
}

/** Opens the session that the flags and settings select. */
export function openSession(app: App, options: SettingsOptions): Context {
  const settings = openSettings(app, options)
  const { globals } = settings
  let limiter: Limiter | undefined
  const lineEngine = once(async (): Promise<AddedModel | undefined> => {
    if (globals.engine === undefined) return undefined
    const { readLineEngine } = await import('../models/local-models.js')
    return readLineEngine(globals.engine)
  })

  async function clientFor(baseUrl: string, apiKey: string, fetch: Fetch): Promise<ApiClient> {
    const { clock, out, stateFolder: folder } = app
    const { ApiClient } = await import('../../client/index.js')
    // All processes with this key share its rate limit. Only this process has the key of its local service.
    const opened = globals.local
      ? new (await import('../../limiter/index.js')).Limiter(clock)
      : (await import('../../limiter/shared-limiter.js')).openSharedLimiter({
          ...{ folder, apiKey, clock, warn: out.warn },
          origin: new URL(baseUrl).origin,
        })
    limiter = opened
    app.onClose(() => opened.close())
    const failureStatuses = settings.setting('failureStatuses')?.split(',') ?? []
    return new ApiClient({
      ...{ baseUrl, apiKey, limiter, clock },
      fetch,
      failureStatuses: failureStatuses.filter((word) => word.trim() !== ''),
      runIdField: settings.setting('runIdField'),
      trace: out.mode.debug ? out.debug : undefined,
    })
  }

  async function connect({ render = false }: ConnectOptions): Promise<Connection> {
    if (globals.local) {
      const { openLocalService } = await import('./local-service.js')
      const engine = await lineEngine()
      const { url, apiKey, ...local } = await openLocalService(app, settings, { render, engine })
      return { ...local, client: await clientFor(url, apiKey, local.fetch) }
    }
    const address = await settings.findAddress()
    const apiKey = address && (await settings.findApiKey())
    if (address === undefined || apiKey === undefined) throw settings.missingError([])
    const fetch = await app.fetch()
    return { client: await clientFor(address, apiKey, fetch), fetch }
  }

  let connection: Promise<Connection> | undefined
  const connectOnce = (needs: ConnectOptions = {}): Promise<Connection> => {
    connection ??= connect(needs)
    return connection
  }

  return {
    ...app,
    ...settings,
    models: once(() => openModels(app, settings, { lineEngine, connect: connectOnce })),
    connect: connectOnce,
    at: (baseUrl, apiKey) =>
      openSession(app, { ...options, apiKey, globals: { ...options.globals, baseUrl } }),
    rateLimitedForMs: () => limiter?.heldBackMs() ?? 0,
    localSession: () => openSession(app, { ...options, globals: { ...options.globals, local: true } }),
  }
}

interface ModelSources {
  lineEngine(): Promise<AddedModel | undefined>
  connect(): Promise<Connection>
}

async function openModels(app: App, settings: Settings, sources: ModelSources): Promise<KnownModels> {
  const { env, out, clock, interrupts, configFolder, stateFolder } = app
  const { KnownModels } = await import('../models/known-models.js')
  if (settings.globals.local) {
    const { localDocuments } = await import('../models/local-models.js')
    const path = settings.setting('localModels')
    const local = await localDocuments({ path, configFolder, env, engine: await sources.lineEngine() })
    return new KnownModels({ configFolder, stateFolder, address: undefined, local })
  }
  // A command without a request needs no address, and one with a request reports it.
  const address = await settings.findAddress().catch(() => undefined)
  const models: AskService['models'] = async (signal) => (await sources.connect()).client.models(signal)
  const ask = { clock, signal: interrupts.first, warn: out.warn, models }
  return new KnownModels({ configFolder, stateFolder, address, ask })
}
