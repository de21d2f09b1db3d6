/** Runs whole command lines in the test process, with buffers as streams, a manual clock, and separate folders. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { expect } from 'vitest'
import type { ReplaceableParts } from '../../src/cli/context/context.js'
import { main } from '../../src/cli/main.js'
import type { InputStream, OutputStream } from '../../src/cli/process/io.js'
import { addedModelPath } from '../../src/cli/settings/folders.js'
import type { FileSystem } from '../../src/host/file-system.js'
import type { Fetch, HttpRequest } from '../../src/host/http.js'
import { createInterrupts, type InterruptSource } from '../../src/host/interrupts.js'
import type { JournalRun } from '../../src/journal/index.js'
import { MODELS_PATH } from '../../src/protocol/id.js'
import { writeJson } from '../../src/protocol/json.js'
import type { Engine } from '../../src/service/engines/engine.js'

import { createManualClock, type ManualClock } from './clock.js'
import { createInstantEngine } from './engines.js'
import { withFaults } from './faults.js'
import { addRow, type PastRun, rowsOf } from './journal.js'
import { openNetwork } from './network.js'
import { readyDatabase } from './ready-database.js'
import { type Scripted, type ScriptedService, type Step, scriptedList } from './responses.js'
import { misfitsOf } from './schemas.js'
import { createTestService, type TestService } from './service.js'
import { temporaryFolder } from './temporary-folder.js'

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly bytes: Buffer
  /** Paths and URLs that `open` would have opened. */
  readonly opened: readonly string[]
}

/** As a user types it: words are separated by spaces, and one with spaces is in quotes. Or the words themselves. */
export type CommandLine = string | readonly string[]

export const wordsOf = (line: CommandLine): readonly string[] =>
  typeof line === 'string'
    ? [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')
    : line

/** What a command has printed that ended with exit 0. */
export function outputOf({ code, stdout, stderr }: Ran): string {
  expect({ code, stderr }).toEqual({ code: 0, stderr })
  return stdout
}

/** The message of a command that is a usage error, and so has printed nothing. */
export function usageErrorOf({ code, stdout, stderr }: Ran): string {
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  return stderr
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | Uint8Array | Readable
  /** Called with all text of standard error so far, after each write. */
  onStderr?(text: string): void
  readonly fetch?: Fetch
  /** Renders the runs of `--local`. */
  readonly engine?: Engine
  /** What the file systems of output files can do. Default: what they really can. */
  readonly fileSystem?: FileSystem
  /** Draws pictures in the terminal. */
  readonly drawPicture?: ReplaceableParts['drawPicture']
  /** Replaces the platform's opener. By default, nothing is opened. */
  openResult?(target: string): Promise<void>
  readonly clock?: ManualClock
  readonly interrupts?: InterruptSource
  /** Which streams are terminals. */
  readonly tty?: { readonly stdin?: boolean; readonly stdout?: boolean; readonly stderr?: boolean }
  /** Width of the streams that are terminals. They have 24 rows. */
  readonly columns?: number
  readonly home?: string
}

const noNetwork: Fetch = async ({ method, url }) => {
  throw new Error(`this test sends nothing, but ${method} ${url} was asked for`)
}

function buffer(
  isTTY: boolean | undefined,
  columns = 80,
  onWrite?: (text: string) => void,
): { stream: OutputStream; bytes(): Buffer } {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(Buffer.from(chunk as Uint8Array))
      onWrite?.(Buffer.concat(chunks).toString())
      done()
    },
  })
  return {
    stream: Object.assign(stream, isTTY === true ? { isTTY: true, columns, rows: 24 } : {}),
    bytes: () => Buffer.concat(chunks),
  }
}

/** The variables of a home, in which the program finds its folders. */
export const homeEnvironment = (home: string) => ({
  HOME: home,
  RUSHES_CONFIG_DIR: join(home, 'config'),
  RUSHES_STATE_DIR: join(home, 'state'),
  NO_COLOR: '1',
})

export async function runCli(line: CommandLine, options: RunOptions = {}): Promise<Ran> {
  const argv = wordsOf(line)
  const { clock = createManualClock(), interrupts = createInterrupts(), home = temporaryFolder() } = options
  const state = join(home, 'state')
  if (existsSync(home) && !existsSync(state)) {
    readyDatabase('journal', join(state, 'journal.db'))
    readyDatabase('limits', join(state, 'limits.db'))
    if (argv.includes('--local')) readyDatabase('service', join(state, 'local', 'service.db'))
  }
  const stdout = buffer(options.tty?.stdout, options.columns)
  const stderr = buffer(options.tty?.stderr, options.columns, options.onStderr)
  const opened: string[] = []
  const openResult = async (target: string) => {
    opened.push(target)
    await options.openResult?.(target)
  }
  const stdin: InputStream = Object.assign(
    options.stdin instanceof Readable
      ? options.stdin
      : Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    options.tty?.stdin === true ? { isTTY: true } : {},
  )
  const code = await clock.runUntil(
    main({
      argv,
      env: { ...homeEnvironment(home), ...options.env },
      stdin: () => stdin,
      stdout: stdout.stream,
      stderr: stderr.stream,
      interrupts,
      parts: {
        clock,
        random: () => 0.5,
        openResult,
        ...(options.drawPicture && { drawPicture: options.drawPicture }),
        ...(options.fileSystem && { fileSystem: options.fileSystem }),
        ...(options.engine === undefined
          ? { fetch: options.fetch ?? noNetwork }
          : { engine: options.engine, ...(options.fetch && { fetch: options.fetch }) }),
      },
    }),
  )
  const ran = {
    code,
    stdout: stdout.bytes().toString(),
    stderr: stderr.bytes().toString(),
    bytes: stdout.bytes(),
    opened,
  }
  // JSON for a terminal has several lines, which the check cannot read.
  if (options.tty?.stdout !== true) expect(misfitsOf(argv, ran)).toEqual([])
  return ran
}

interface AddedModel {
  readonly name: string
  readonly kind?: unknown
  readonly input?: unknown
  readonly price?: unknown
}

export interface HomeOptions extends RunOptions {
  /** Settings of the default profile, or the text of the config file. */
  readonly config?: object | string
  /** The runs that earlier commands created, the oldest first. */
  readonly journal?: readonly PastRun[]
  /** Documents, as `rushes models add` keeps them. */
  readonly models?: readonly AddedModel[]
  /** What the service answers in turn. By default, a request fails the command. */
  readonly answers?: readonly Step[]
}

export interface Home {
  readonly home: string
  /** Those that were answered. */
  readonly requests: readonly HttpRequest[]
  run(line: CommandLine, options?: RunOptions): Promise<Ran>
  /** Of the journal, the newest first. */
  rows(): readonly JournalRun[]
}

/** Creates the home of a user whose environment has the settings of a service. */
export function createHome(options: HomeOptions = {}): Home {
  const { config, journal = [], models = [], answers, ...own } = options
  const { home = temporaryFolder() } = own
  const service = scripted(...(answers ?? []))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, text, { mode: 0o600 })
  }
  const folder = join(home, 'config')
  if (config !== undefined)
    write(
      join(folder, 'config.json'),
      typeof config === 'string' ? config : JSON.stringify({ profiles: { default: config } }),
    )
  for (const run of journal) addRow(home, run)
  for (const model of models) write(addedModelPath(folder, model.name), writeJson(model))
  return {
    home,
    requests: service.requests,
    run: (line, more) =>
      runCli(line, { env: SET, ...(answers && { fetch: service.fetch }), ...own, ...more, home }),
    rows: () => rowsOf(home),
  }
}

/** A home whose local runs may use model servers: it has the real network, and a preview that draws at once. */
export function createLocalHome(env: Readonly<Record<string, string>> = {}) {
  const clock = createManualClock()
  const { fetch } = openNetwork({ clock })
  const preview = createInstantEngine()
  const home = createHome({ env, clock, fetch, engine: preview })
  return { ...home, clock, fetch, preview, file: (name: string) => join(home.home, name) }
}

/** A loopback address, so that plain http is allowed. No server listens on it. */
export const LOOPBACK_URL = 'http://127.0.0.1:1'

export interface CliService extends TestService, Pick<Home, 'home' | 'rows'> {
  readonly requests: HttpRequest[]
  /** The service. `requests` records every request. */
  readonly counting: Fetch
  /** The settings that a command needs to reach the service. */
  readonly env: Readonly<Record<string, string>>
  run(line: CommandLine, options?: RunAtService): Promise<Ran>
  /** Creates an image, or several with `-n`, and does not wait. Returns the ids. */
  create(flags?: CommandLine): Promise<readonly string[]>
  /** The bodies of the creates so far. */
  creates(): readonly CreateBody[]
}

interface CreateBody {
  readonly model: string
  readonly input: Readonly<Record<string, unknown>>
}

/** The bodies of the creates among these requests. */
export const createsIn = (requests: readonly HttpRequest[]): readonly CreateBody[] =>
  requests
    .filter(({ method, url }) => method === 'POST' && url.pathname.endsWith('/runs'))
    .map(({ body }) => JSON.parse(Buffer.from(body ?? []).toString()))

export interface RunAtService extends Omit<RunOptions, 'clock' | 'home'> {
  /** Between the command and the service, such as `create:lose:1` (`faults.ts`). */
  readonly faults?: readonly string[]
  /** Called before each request reaches the service. */
  onRequest?(request: HttpRequest): unknown
}

interface CliServiceOptions
  extends NonNullable<Parameters<typeof createTestService>[0]>,
    Pick<HomeOptions, 'config' | 'journal'> {
  /** Whether the service has a list of models. The published interface has none. */
  readonly hasList?: boolean
}

/** Creates the real service behind `fetch`, with the settings that a command needs to reach it. */
export async function createCliService({
  hasList = false,
  config,
  journal,
  ...serviceOptions
}: CliServiceOptions = {}): Promise<CliService> {
  const service = await createTestService({ publicUrl: LOOPBACK_URL, ...serviceOptions })
  const { home, rows, ...own } = createHome({
    clock: service.clock,
    ...(config && { config }),
    ...(journal && { journal }),
  })
  const requests: HttpRequest[] = []
  const fetch: Fetch = (request) => {
    if (!hasList && asksForList(request)) return noList.fetch(request)
    requests.push(request)
    return service.fetch(request)
  }
  const env = {
    RUSHES_BASE_URL: LOOPBACK_URL,
    RUSHES_API_KEY: service.apiKey,
    RUSHES_IMAGE_MODEL: 'rushes/preview-image',
    RUSHES_VIDEO_MODEL: 'rushes/preview-video',
  }
  const run: CliService['run'] = (line, { faults = [], onRequest, ...options } = {}) => {
    const seen: Fetch = async (request) => {
      await onRequest?.(request)
      return await fetch(request)
    }
    return own.run(line, {
      fetch: withFaults(onRequest ? seen : fetch, faults, service.clock),
      ...options,
      env: { ...env, ...options.env },
    })
  }
  return {
    ...service,
    requests,
    counting: fetch,
    home,
    env,
    run,
    create: async (flags = []) =>
      lines((await run(['run', 'image', 'a fox', '--no-wait', ...wordsOf(flags)])).stdout),
    creates: () => createsIn(requests),
    rows,
  }
}

const asksForList = ({ url }: Pick<HttpRequest, 'url'>): boolean => url.pathname.endsWith(MODELS_PATH)

/** A service without a list of models, which responds to other requests as `scriptedList` does. */
export function scripted(...steps: readonly Step[]): ScriptedService {
  const others = scriptedList(...steps)
  return { ...others, fetch: withoutList(others.fetch) }
}

const noList = scriptedList({ status: 404 })

/** A home whose service has these models in its list, which a test can change, and accepts every create. */
export function createListedHome(models: readonly unknown[], options: HomeOptions = {}) {
  const created = scripted({ status: 201, body: { id: 'run_1' } })
  const list = { answer: { status: 200, body: { models } } as Scripted, asked: 0 }
  const answers = scriptedList(() => {
    list.asked++
    return list.answer
  })
  const home = createHome({ fetch: withListOf(answers.fetch, created.fetch), ...options })
  return { ...home, list, creates: () => createsIn(created.requests) }
}

/** Makes the service behind `fetch` one whose list of models is answered by `list`. */
export const withListOf =
  (list: Fetch, fetch: Fetch): Fetch =>
  (request) =>
    (asksForList(request) ? list : fetch)(request)

/** Makes the service behind `fetch` one without a list of models. */
export const withoutList = (fetch: Fetch): Fetch => withListOf(noList.fetch, fetch)

/** The lines of a text that are not empty. */
export const lines = (text: string): readonly string[] => text.split('\n').filter(Boolean)
/** The JSON objects of a text, one a line. */
// biome-ignore lint/suspicious/noExplicitAny: the tests look into objects of every shape
export const objects = (text: string): any[] => lines(text).map((line) => JSON.parse(line))

export const SET: Readonly<Record<string, string>> = {
  RUSHES_BASE_URL: LOOPBACK_URL,
  RUSHES_API_KEY: 'rk_test',
  RUSHES_IMAGE_MODEL: 'acme/still-1',
  RUSHES_VIDEO_MODEL: 'acme/cinema-1',
}
