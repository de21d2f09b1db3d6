/**
 * What a command works with: the App, which is this process, and a Session, which is its settings and the one service that
 * it speaks with. Streams and settings are values; everything that is slow or can fail is a function.
 */
import type { Command } from 'commander'
import type { ApiClient } from '../../client/index.js'
import type { Downloader } from '../../download/index.js'
import type { Clock } from '../../host/clock.js'
import type { FileSystem } from '../../host/file-system.js'
import type { Fetch } from '../../host/http.js'
import type { Journal } from '../../journal/index.js'
import type { PictureRequest } from '../../preview/terminal-picture.js'
import type { Engine } from '../../service/engines/engine.js'
import type { KnownModels } from '../models/known-models.js'
import type { Env } from '../process/io.js'
import type { ConfigFile } from '../settings/config-file.js'
import type { Settings, SettingsOptions } from '../settings/settings.js'
import type { Terminal } from '../terminal/output.js'

/** Parts that tests can replace. */
export interface ReplaceableParts {
  readonly clock?: Clock
  random?(): number
  readonly fetch?: Fetch
  /** Renders the runs of the local service. */
  readonly engine?: Engine
  /** Returns the escape codes of a picture. Rejects with the reason in plain words. */
  drawPicture?(request: PictureRequest, signal: AbortSignal, env: Env): Promise<string>
  readonly fileSystem?: FileSystem
  /** Opens a file or a URL with the platform's opener. */
  openResult?(target: string): Promise<unknown>
}

/** This process: its streams, clock, signals and folders, and what is closed at its end. */
export interface App extends Terminal {
  readonly parts: ReplaceableParts
  readonly config: ConfigFile
  readonly configFolder: string
  readonly stateFolder: string
  random(): number
  /** Opens the journal. Throws `usage` when the journal cannot be opened. */
  journal(): Promise<Journal>
  /** Opens the journal for commands that can work without it. Throws `usage` only for a journal of a newer format. */
  openJournal(): Promise<Journal>
  /** Creates a fetch function that sends no API key. */
  fetch(): Promise<Fetch>
  downloader(fetch: Fetch): Promise<Downloader>
  /** Calls `close` at the end, before what was opened earlier is closed. */
  onClose(close: () => unknown): void
}

/** The settings of a command, and the one service that it speaks with. */
export interface Session extends Settings {
  /** Returns the documents of the models. Throws `usage` when `local.models` cannot be read. */
  models(): Promise<KnownModels>
  /** Connects once. */
  connect(options?: ConnectOptions): Promise<Connection>
  /** Opens the session of this service with this API key. */
  at(baseUrl: string, apiKey: string): Context
  /** Remaining time in ms that requests are held back after a 429. Returns 0 when they are not held back. */
  rateLimitedForMs(): number
  /** Opens a session of the local service. Undefined in a session of `rushes mcp`, which speaks with one service. */
  readonly localSession: (() => Context) | undefined
}

export interface Context extends App, Session {}

/** Checks before a request, so that a run is neither created nor given up in vain. */
interface LocalChecks {
  /** Throws `usage` for a model whose runs would all fail. */
  checkModel(model: string): void
  /**
   * Throws `usage` for a run that cannot be rendered, for example without the key of its provider. `mustExist`:
   * also for one whose model is not there, so that a job could not be canceled.
   */
  checkRun(id: string, mustExist?: boolean): Promise<void>
}

export interface Connection extends Partial<LocalChecks> {
  readonly client: ApiClient
  /** Fetches output URLs, without the API key and the rate limit. */
  readonly fetch: Fetch
}

export interface ConnectOptions {
  /** With `--local`: whether this process renders the runs that it waits for. */
  readonly render?: boolean
}

/** Options of a command for its settings. */
export type CommandNeeds = Omit<SettingsOptions, 'globals' | 'apiKey'>

/** Passed to a command's `register`, together with its commander object. */
export interface CommandEnvironment {
  /** Prints the help and the version. */
  print(text: string): void
  /** Width of the terminal that shows the help. Undefined when standard output is not a terminal. */
  columns?(): number | undefined
  /** Returns the program with the flags of every command. */
  program(): Promise<Command>
  /** Makes `work` the action of a command: it gets the flags and the arguments of the line, and returns the exit code. */
  act<Flags extends object, Words extends readonly unknown[]>(
    command: Command,
    work: (ctx: Context, flags: Flags, ...words: Words) => Promise<number>,
    needs?: CommandNeeds,
  ): void
}
