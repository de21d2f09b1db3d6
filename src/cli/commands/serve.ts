/** `rushes serve`: runs the local service on a port, until a signal stops it. */
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { isDiskFull } from '../../host/directories.js'
import { writeAtomically } from '../../host/files.js'
import { errorCode } from '../../host/system-error.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { printable } from '../../protocol/text.js'
import type { EngineParts } from '../../service/engines/read-engine.js'
import { parseFault } from '../../service/http/faults.js'
import { type NodeRole, ROLES } from '../../service/rules/names.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { choiceOption, repeated, wholeNumber } from '../flags/values.js'
import { announce, printFault } from '../serve/announce.js'
import {
  databaseOption,
  databaseUrlOf,
  dataFolderOf,
  type EngineFlags,
  engineOptions,
  modelSourcesOf,
  networksOf,
  openStorage,
  portOf,
  publicUrlOf,
  retainedMs,
  sizeOf,
  URL_FILE,
} from '../serve/flags.js'

/** Log levels, from the least to the most verbose. */
const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
type LogLevel = (typeof LOG_LEVELS)[number]

interface ServeOptions extends EngineFlags {
  readonly port: string
  readonly host: string
  readonly data?: string
  readonly database?: string
  readonly storage?: string
  readonly concurrency?: string
  readonly publicUrl?: string
  readonly bodyLimit: string
  readonly fault?: readonly string[]
  readonly retain?: string
  readonly trustProxy?: readonly string[]
  readonly logLevel: LogLevel
  readonly metricsPort?: string
  readonly role: NodeRole
  /** False with --no-console. */
  readonly console: boolean
}

export function register(command: Command, { run }: CommandEnvironment): void {
  const options = [
    new Option('--port <port>', 'Port to listen on; 0 for any free port').default(DEFAULTS.port),
    new Option('--host <address>', 'Address to listen on').default(DEFAULTS.host),
    new Option('--public-url <url>', 'Base URL of the outputs (default: the URL that it listens on)'),
    new Option(
      '--data <folder>',
      'Folder for runs and outputs (default: RUSHES_DATA, else in the state folder)',
    ),
    new Option(
      '--concurrency <n>',
      'Number of runs rendered at the same time, and per model with a server (default: one per core, at most 4)',
    ),
    ...engineOptions(),
    new Option('--no-console', 'Turn off the console: the web page and its endpoints'),
    new Option(
      '--fault <spec>',
      'Inject a fault, for example create:429:RATE_LIMITED:2 (repeatable)',
    ).argParser(repeated),
    choiceOption(
      '--log-level <level>',
      'Log level on standard error: silent, error, warn, info or debug',
      LOG_LEVELS,
    ).default(DEFAULTS.logLevel),
    databaseOption().helpGroup('Storage options:'),
    new Option(
      '--storage <url>',
      'Keep outputs and reference images in an S3 bucket, s3://bucket/prefix (default: files in --data)',
    ).helpGroup('Storage options:'),
    new Option(
      '--retain <duration>',
      'Delete outputs older than this, for example 7d (default: keep everything)',
    ).helpGroup('Storage options:'),
    choiceOption(
      '--role <role>',
      'Role of this node: answer requests (api), render runs (worker), or all',
      ROLES,
    )
      .default(DEFAULTS.role)
      .helpGroup('Server options:'),
    new Option('--body-limit <size>', 'Maximum size of a request body: 64MiB, 500kB or bytes')
      .default(DEFAULTS.bodyLimit)
      .helpGroup('Server options:'),
    new Option(
      '--trust-proxy <cidr>',
      'Trust X-Forwarded-For from this IP address or CIDR range (repeatable)',
    )
      .argParser(repeated)
      .helpGroup('Server options:'),
    new Option(
      '--metrics-port <port>',
      'Port for Prometheus metrics at /metrics; 0 for any free port (default: no metrics)',
    ).helpGroup('Server options:'),
  ]
  for (const option of options) command.addOption(option)
  command.action((flags: ServeOptions) =>
    run(command, (ctx) => serveCommand(ctx, flags), { ignoresLocal: true }),
  )
}

async function serveCommand(ctx: Context, options: ServeOptions): Promise<number> {
  const { out, interrupts, clock, env } = ctx
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError('`rushes serve` cannot be used with --local or --base-url.')
  const port = portOf(options.port, '--port')
  const metricsPort =
    options.metricsPort === undefined ? undefined : portOf(options.metricsPort, '--metrics-port')
  const bodyLimitBytes = sizeOf(options.bodyLimit)
  const publicUrl = options.publicUrl === undefined ? undefined : publicUrlOf(options.publicUrl)
  const faults = options.fault?.map(parseFault)
  const modelSources = modelSourcesOf(options, env, options.role)
  const retainMs = retainedMs(options.retain)
  const databaseUrl = databaseUrlOf(options.database, env)
  const trustedProxies = networksOf(options.trustProxy)
  const { openModelSet } = await import('../../service/models/model-set.js')
  const models = await openModelSet(modelSources)
  for (const { document, note } of models.models)
    if (note !== undefined) out.note(`${document.name}: ${printable(note)}.`)
  const { createPreviewProcess, createThumbnailProcess, defaultConcurrency, readConsoleFiles } = await import(
    '../context/local-service.js'
  )
  const concurrency =
    options.concurrency === undefined
      ? defaultConcurrency()
      : wholeNumber(options.concurrency, '--concurrency', 1, 64)
  const data = resolve(dataFolderOf(options.data, ctx))
  const { host } = options
  const { createService } = await import('../../service/index.js')
  // Other services start without prom-client.
  const metrics =
    metricsPort === undefined
      ? undefined
      : (await import('../../service/http/metrics.js')).createMetrics(clock)
  const { checkListening } = await import('../../service/http/listening.js')
  await checkListening({ host, port })
  if (metricsPort !== undefined) await checkListening({ host, port: metricsPort }, '--metrics-port')
  const storage = await openStorage(ctx, options.storage)
  const preview = ctx.parts.engine ?? createPreviewProcess()
  const hasConsole = options.console && options.role !== 'worker'
  const page = hasConsole ? await readConsoleFiles() : undefined
  if (hasConsole && page === undefined)
    out.warn('The console is off: its files are missing from this installation of rushes.')
  const engine = models.createEngine({
    ...{ env, clock, urls: [databaseUrl, options.storage] },
    preview: () => preview,
    // The network is loaded at the first request.
    async fetch(request) {
      const network: Pick<EngineParts, 'fetch'> = { fetch: await ctx.fetch() }
      return await network.fetch(request)
    },
  })
  const create = () =>
    createService({
      dataFolder: data,
      databaseUrl,
      role: options.role,
      engine,
      models: models.models,
      clock,
      concurrency,
      bodyLimitBytes,
      publicUrl,
      env,
      faults,
      onFault: (words) => printFault(ctx, words),
      retainMs,
      trustedProxies,
      metrics,
      storage,
      console: page,
      thumbnailEngine: page && createThumbnailProcess(),
      logging: {
        level: options.logLevel,
        write: (text: string) => void ctx.stderr.write(text),
      },
    })
  const service = await createWhenDiskHasSpace(ctx, data, create)
  try {
    const listening =
      metricsPort === undefined ? undefined : await metrics?.listen({ host, port: metricsPort })
    const { url } = await service.listen({ host, port })
    service.startRendering()
    await writeAtomically(join(data, URL_FILE), `${publicUrl ?? url}\n`).catch(() => {})
    announce(ctx, {
      url,
      host,
      publicUrl,
      data,
      console: service.console,
      apiKey: service.apiKey,
      models: models.models.map(({ document }) => document),
      databaseUrl,
      dataFlag: options.data,
      role: options.role,
      metricsUrl: listening?.url,
    })
    await untilAborted(interrupts.first)
    out.note('Shutting down: finishing requests, returning unfinished renders to the queue.')
  } finally {
    // Ctrl-C stops immediately. SIGTERM, which service managers send, first drains the running requests.
    await service.close({ drain: interrupts.first.reason?.by === 'SIGTERM' })
  }
  return EXIT.ok
}

/** Interval of retries while the disk is full. The service then starts without a manual restart once there is space. */
const RETRY_MS = 1_000

/** Retries `create` while the disk of the folder is full. Rejects on any other error and on Ctrl-C. */
export async function createWhenDiskHasSpace<Service>(
  { out, clock, interrupts }: Pick<Context, 'out' | 'clock' | 'interrupts'>,
  folder: string,
  create: () => Promise<Service>,
): Promise<Service> {
  for (let isWarned = false; ; isWarned = true) {
    try {
      return await create()
    } catch (error) {
      if (!isDiskFullError(error, folder)) throw error
      if (!isWarned) out.warn(`The disk of ${folder} is full. The service starts when there is space.`)
      await clock.sleep(RETRY_MS, interrupts.first)
    }
  }
}

function isDiskFullError(error: unknown, folder: string): boolean {
  const code = errorCode((error as Error).cause) ?? ''
  return (
    /^(ENOSPC|EDQUOT|SQLITE_FULL)/.test(code) || (/^SQLITE_(IOERR|CANTOPEN)/.test(code) && isDiskFull(folder))
  )
}
