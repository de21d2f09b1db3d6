/**
 * The context of a command. Streams and settings are values; everything that is slow or can fail is a function. Only
 * this folder creates and connects the engines.
 */
import { join } from 'node:path'
import type { Command } from 'commander'
import type { ApiClient } from '../../client/index.js'
import type { DownloadedFile, Downloader } from '../../download/index.js'
import { type RushesError, usageError } from '../../errors.js'
import { type Clock, systemClock } from '../../host/clock.js'
import type { Folders } from '../../host/directories.js'
import { type FileSystem, systemFiles } from '../../host/file-system.js'
import type { Fetch } from '../../host/http.js'
import type { Interrupts } from '../../host/interrupts.js'
import type { Journal } from '../../journal/index.js'
import type { Limiter } from '../../limiter/index.js'
import type { ModelDocument } from '../../protocol/models.js'
import type { Engine } from '../../service/engines/engine.js'
import type { Globals } from '../flags/globals.js'
import type { AskService, KnownModels } from '../models/known-models.js'
import type { OpenedEngine } from '../models/local-engine.js'
import type { Env, Io } from '../process/io.js'
import { type ConfigFile, chooseProfile, createConfigFile } from '../settings/config-file.js'
import { foldersOf, LOCAL_FOLDER } from '../settings/folders.js'
import { type Missing, missingError, NO_BASE_URL } from '../settings/required-settings.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import type { Output } from '../terminal/output.js'
import {
  type CommandSettings,
  type CommandSettingsOptions,
  createCommandSettings,
  once,
  type Settings,
} from './command-settings.js'
import type { PictureParts } from './picture-parts.js'

/** Parts that tests can replace. */
export interface ReplaceableParts {
  readonly clock?: Clock
  random?(): number
  readonly fetch?: Fetch
  /** Renders the runs of the local service. */
  readonly engine?: Engine
  readonly pictures?: PictureParts
  readonly fileSystem?: FileSystem
  /** Opens a file or a URL with the platform's opener. */
  openResult?(target: string): Promise<unknown>
}

export interface Connection {
  readonly client: ApiClient
  /** Fetches output URLs, without the API key and the rate limit. */
  readonly fetch: Fetch
  /** With `--local`: finds the files of output URLs in the data folder. */
  localFiles?(urls: readonly string[]): Promise<readonly DownloadedFile[]>
  /**
   * With `--local`: throws `usage` for a model whose runs would all fail. `mustExist`: also for one that the service does
   * not have.
   */
  checkModel?(model: string, mustExist?: boolean): void
}

export interface ConnectOptions {
  /** With `--local`: whether this process renders the runs that it waits for. */
  readonly render?: boolean
}

export interface Context extends Io, Settings {
  readonly globals: Globals
  readonly out: Output
  readonly clock: Clock
  readonly interrupts: Interrupts
  readonly config: ConfigFile
  readonly profileName: string
  readonly configFolder: string
  readonly stateFolder: string
  /** What the file systems of output files can do. */
  readonly fileSystem: FileSystem
  random(): number
  /** Returns the service's name in the journal: its URL, or `local` with `--local`. */
  address(): Promise<string>
  /** Returns the address like `address`, or undefined if no service is configured. Throws `usage` or `insecure_url`. */
  findAddress(): Promise<string | undefined>
  /** Opens the journal. Throws `usage` when the journal cannot be opened. */
  journal(): Promise<Journal>
  /** Opens the journal for commands that can work without it. Throws `usage` only for a journal of a newer format. */
  openJournal(): Promise<Journal>
  /** Returns the documents of the models. Throws `usage` when `local.models` cannot be read. */
  models(): Promise<KnownModels>
  /** Opens them again, for one part of a long command. */
  openModels(): Promise<KnownModels>
  connect(options?: ConnectOptions): Promise<Connection>
  /** Returns one error for these missing settings and for those of the connection. */
  missingError(missing: readonly Missing[]): Promise<RushesError>
  /** Returns this context with `--local`. Both share streams, files and closing. */
  withLocal(): Context
  /** Returns this context with the service of a run, and its profile unless the command or the environment names one. */
  at(home: RunHome): Promise<Context>
  /** Creates a context for one part of a long command. The caller closes it. Both share streams, settings and API keys. */
  separate(): Context
  /** Creates a fetch function that sends no API key. */
  fetch(): Promise<Fetch>
  /** Creates a client for a URL and a key that are not in the settings. */
  clientFor(baseUrl: string, apiKey: string): Promise<ApiClient>
  downloader(fetch: Fetch): Promise<Downloader>
  /** Remaining time in ms that requests are held back after a 429. Returns 0 when they are not held back. */
  rateLimitedForMs(): number
  engine(): Promise<Engine>
  pictureParts(): Promise<PictureParts>
  openResult(target: string): Promise<unknown>
  close(): Promise<void>
}

/** Options of a command for its context. */
export interface CommandNeeds {
  /** Whether the command may create the profile of `--profile`. For other commands the profile must exist. */
  readonly createsProfile?: boolean
  /** Whether the command itself reports a service URL with the path of the API, so that no warning is printed. */
  readonly reportsAddress?: boolean
  /** Whether the command ignores RUSHES_LOCAL and the setting `local`. */
  readonly ignoresLocal?: boolean
}

/** Passed to a command's `register`, together with its commander object. */
export interface CommandEnvironment {
  /** Prints the help and the version. */
  print(text: string): void
  /** The document of the model that the line names, or that the settings select. */
  readonly model?: ModelDocument | undefined
  /** Width of the terminal that shows the help. Undefined when standard output is not a terminal. */
  columns?(): number | undefined
  /** Returns the program with the flags of every command. */
  program(): Promise<Command>
  /** Runs `work` with a context and stores the exit code. */
  run(command: Command, work: (ctx: Context) => Promise<number>, needs?: CommandNeeds): Promise<void>
}

/** State that all contexts of one command share. */
interface Shared {
  readonly keys: Map<string, string>
  readonly closers: (() => Promise<void>)[]
  readonly openJournal: () => Promise<Journal>
  readonly fetch: () => Promise<Fetch>
}

/** Where a run of the journal lives: the address is a URL, or `local`. */
export interface RunHome {
  readonly address: string
  readonly profile: string
}

export interface ContextOptions extends Io, CommandNeeds {
  readonly globals: Globals
  /** The service of a run. Replaces the service URL of the settings. */
  readonly home?: RunHome
  readonly out: Output
  readonly interrupts: Interrupts
  readonly parts?: ReplaceableParts
}

/** The parts from which a context opens its engines. */
interface Opening {
  readonly options: ContextOptions
  readonly clock: Clock
  readonly random: () => number
  readonly folders: Folders
  readonly settings: CommandSettings
  readonly limiters: Limiter[]
  readonly closers: Shared['closers']
  readonly fetch: Shared['fetch']
  readonly openJournal: Shared['openJournal']
  /** Asks the server of `--engine` once for the name of its model. */
  lineEngine(): Promise<OpenedEngine | undefined>
  /** A second client would open the rate limit again, and repeat its warnings. */
  remote: ApiClient | undefined
  /** The connection that was opened for the list of models. The next request uses it, also if it has failed. */
  connected: Promise<Connection> | undefined
}

export function createContext(options: ContextOptions, shared: Partial<Shared> = {}): Context {
  const { globals, interrupts, parts = {} } = options
  const { fileSystem = systemFiles } = parts
  if (globals.local && globals.baseUrl !== undefined)
    throw usageError('--local and --base-url cannot be used together.', 'Use only one of them.')
  const { closers = [], keys = new Map<string, string>() } = shared
  const folders = foldersOf(options.env)
  const config = createConfigFile(folders.config)
  const profileName = chooseProfile(globals.profile, options.env, options.home?.profile)
  const opening = openingOf({ ...options, config, profileName, keys }, { ...shared, closers, keys }, folders)
  const { clock, random, settings, fetch, openJournal } = opening
  const { profile, setting, baseUrl, isLocal } = settings
  const ctx: Context = {
    ...options,
    clock,
    config,
    profileName,
    configFolder: folders.config,
    stateFolder: folders.state,
    fileSystem,
    random,
    profile,
    setting,
    baseUrl,
    address: async () => (globals.local ? LOCAL_ADDRESS : baseUrl()),
    findAddress: async () => (globals.local ? LOCAL_ADDRESS : settings.findBaseUrl()),
    journal: async () => (await openJournal()).check(),
    openJournal,
    models: once(() => modelsOf(opening, ctx)),
    openModels: () => modelsOf(opening, ctx),
    fetch,
    clientFor: (address, apiKey) => clientFor(opening, address, apiKey),
    connect: (needs = {}) => (globals.local ? connectLocal(opening, ctx, needs) : connectRemote(opening)),
    missingError: (missing) => missingWith(opening, missing),
    isLocal,
    withLocal: once(() => {
      const { baseUrl: _, ...others } = globals
      const local = { ...options, globals: { ...others, local: true } }
      return createContext(local, { closers, keys, openJournal })
    }),
    at: contextsByHome(options, config, { closers, openJournal, fetch }),
    separate: () => createContext(options, { keys }),
    async downloader(fetchOutput) {
      const { createDownloader } = await import('../../download/index.js')
      return createDownloader({ fetch: fetchOutput, clock, random, fileSystem })
    },
    rateLimitedForMs: () => Math.max(0, ...opening.limiters.map((limiter) => limiter.heldBackMs())),
    engine: async () => parts.engine ?? (await import('./local-service.js')).createPreviewProcess(),
    pictureParts: async () =>
      parts.pictures ?? (await import('./picture-parts.js')).createPictureParts(options.env),
    async openResult(target) {
      const { openFile, refuseProgram } = await import('./open-file.js')
      refuseProgram(target)
      await (parts.openResult?.(target) ?? openFile(target, { clock, signal: interrupts.first }))
    },
    async close() {
      // Closes in reverse order, for example a service before its network.
      for (const close of closers.splice(0).reverse()) await close()
    },
  }
  return ctx
}

/** Returns one context for each service and profile. The names of removed profiles are ignored. */
function contextsByHome(options: ContextOptions, config: ConfigFile, shared: Partial<Shared>): Context['at'] {
  const contexts = new Map<string, Context>()
  return async ({ address, profile }) => {
    const isKnown = (await config.profiles()).includes(profile)
    const home = { address, profile: isKnown ? profile : 'default' }
    const name = JSON.stringify(home)
    const found = contexts.get(name) ?? createContext({ ...options, home }, shared)
    contexts.set(name, found)
    return found
  }
}

function openingOf(
  options: ContextOptions & Pick<CommandSettingsOptions, 'config' | 'profileName' | 'keys'>,
  shared: Partial<Shared> & Pick<Shared, 'closers'>,
  folders: Opening['folders'],
): Opening {
  const { env, globals, interrupts, out, parts = {} } = options
  const { createsProfile = false, reportsAddress = false } = options
  const { closers } = shared
  const clock = parts.clock ?? systemClock
  const signal = interrupts.first
  const settings = createCommandSettings({ ...options, clock, signal, createsProfile, reportsAddress })
  const fetch = shared.fetch ?? once(async () => parts.fetch ?? (await openNetwork(env, clock)))
  return {
    options,
    clock,
    random: parts.random ?? Math.random,
    folders,
    settings,
    limiters: [],
    closers,
    fetch,
    openJournal: shared.openJournal ?? once(() => openJournal(folders.state, clock, out, closers)),
    lineEngine: once(async () => {
      const { openEngine } = await import('./connections.js')
      return openEngine(globals.engine, folders.state, { env: options.env, clock, signal, fetch })
    }),
    remote: undefined,
    connected: undefined,
  }
}

async function openNetwork(env: Env, clock: Clock): Promise<Fetch> {
  const { createNetwork, skipWasmOptimization } = await import('../../host/undici.js')
  skipWasmOptimization()
  return createNetwork({ env, clock }).fetch
}

async function openJournal(
  folder: string,
  clock: Clock,
  { warn }: Output,
  closers: Shared['closers'],
): Promise<Journal> {
  const { Journal } = await import('../../journal/index.js')
  const journal = new Journal({ folder, now: clock.now, warn })
  closers.push(async () => journal.close())
  return journal
}

async function modelsOf(opening: Opening, ctx: Context): Promise<KnownModels> {
  const { env, globals, out, interrupts } = opening.options
  const { openModels } = await import('../models/known-models.js')
  const models: AskService['models'] = async (signal) => {
    opening.connected = undefined
    opening.connected = ctx.connect()
    return (await opening.connected).client.models(signal)
  }
  const ask = { clock: opening.clock, signal: interrupts.first, warn: out.warn, models }
  return openModels({ env, globals, engine: opening.lineEngine, ask })
}

async function clientFor(opening: Opening, baseUrl: string, apiKey: string): Promise<ApiClient> {
  const { clock, settings, fetch, options } = opening
  const { out } = options
  const { createApiClient } = await import('../../client/index.js')
  const failureStatuses = (await settings.setting('failureStatuses'))?.split(',') ?? []
  return createApiClient({
    baseUrl,
    apiKey,
    fetch: await fetch(),
    limiter: await limiterFor(opening, baseUrl, apiKey),
    clock,
    failureStatuses: failureStatuses.filter((word) => word.trim() !== ''),
    runIdField: await settings.setting('runIdField'),
    trace: out.mode.debug ? out.debug : undefined,
  })
}

/**
 * Opens the rate limit of a key, which all processes with this key share. With `--local` only this process uses the
 * key, so its limit is not shared.
 */
async function limiterFor(opening: Opening, address: string, apiKey: string): Promise<Limiter> {
  const { clock, folders, closers, options } = opening
  const { origin } = new URL(address)
  const { warn } = options.out
  const { Limiter } = await import('../../limiter/index.js')
  const { openSharedLimiter } = await import('../../limiter/shared-limiter.js')
  const limiter = options.globals.local
    ? new Limiter(clock)
    : openSharedLimiter({ folder: folders.state, origin, apiKey, clock, warn })
  closers.push(async () => limiter.close())
  opening.limiters.push(limiter)
  return limiter
}

async function connectRemote(opening: Opening): Promise<Connection> {
  const { settings, fetch, connected } = opening
  opening.connected = undefined
  if (connected !== undefined) return connected
  const address = await settings.findBaseUrl()
  const apiKey = address && (await settings.findApiKey(new URL(address).origin))
  if (address === undefined || apiKey === undefined) throw await missingWith(opening, [])
  opening.remote ??= await clientFor(opening, address, apiKey)
  return { client: opening.remote, fetch: await fetch() }
}

/** Reports all missing settings at once, so that the user can fix them together. */
async function missingWith(
  { settings, options }: Opening,
  missing: readonly Missing[],
): Promise<RushesError> {
  if (options.globals.local) return missingError(missing)
  const address = await settings.findBaseUrl()
  if (address === undefined) return missingError([NO_BASE_URL, ...missing, ...(await settings.missingKey())])
  const apiKey = await settings.findApiKey(new URL(address).origin)
  return missingError(apiKey === undefined ? [...missing, settings.noKeyFor(address)] : missing)
}

async function connectLocal(
  opening: Opening,
  ctx: Context,
  { render = false }: ConnectOptions,
): Promise<Connection> {
  const { env, out } = opening.options
  const { folders, settings, clock, fetch } = opening
  const { openLocal } = await import('./connections.js')
  const localModels = { path: await settings.setting('localModels'), configFolder: folders.config, env }
  const lineEngine = await opening.lineEngine()
  const { url, apiKey, filesOf, checkModel, close } = await openLocal({
    ...{ localModels, lineEngine, clock, render, env, fetch, warn: out.warn, note: out.note },
    dataFolder: join(folders.state, LOCAL_FOLDER),
    stateFolder: folders.state,
    engine: () => ctx.engine(),
  })
  opening.closers.push(close)
  const client = await clientFor(opening, url, apiKey)
  return { client, fetch: await fetch(), localFiles: filesOf, checkModel }
}
