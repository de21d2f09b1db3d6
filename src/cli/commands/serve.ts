/** `rushes serve`: runs the local service on a port, until a signal stops it. */
import { join } from 'node:path'
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { isDiskFull } from '../../host/file-system.js'
import { writeAtomically } from '../../host/files.js'
import { errorCode } from '../../host/system-error.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { printable } from '../../protocol/text.js'
import type { EngineParts } from '../../service/engines/read-engine.js'
import type { Metrics } from '../../service/http/metrics.js'
import type { ModelSet } from '../../service/models/model-set.js'
import type { Service } from '../../service/options.js'
import { ROLES } from '../../service/rules/names.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { choiceOption, repeated } from '../flags/values.js'
import { announce, printFault } from '../serve/announce.js'
import {
  databaseOption,
  openStorage,
  readFlags,
  type ServeFlags,
  type ServeSettings,
  URL_FILE,
} from '../serve/flags.js'

/** Log levels, from the least to the most verbose. */
const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const

export function register(command: Command, { act }: CommandEnvironment): void {
  const level = choiceOption(
    '--log-level <level>',
    'Log level on standard error: silent, error, warn, info or debug',
    LOG_LEVELS,
  )
  const role = choiceOption(
    '--role <role>',
    'Role of this node: answer requests (api), render runs (worker), or all',
    ROLES,
  )
  command
    .option('--port <port>', 'Port to listen on; 0 for any free port', DEFAULTS.port)
    .option('--host <address>', 'Address to listen on', DEFAULTS.host)
    .option('--public-url <url>', 'Base URL of the outputs (default: the URL that it listens on)')
    .option('--data <folder>', 'Folder for runs and outputs (default: RUSHES_DATA, else in the state folder)')
    .option(
      '--concurrency <n>',
      'Number of runs rendered at the same time, and per model with a server (default: one per core, at most 4)',
    )
    .option('--no-console', 'Turn off the console: the web page and its endpoints')
    .option('--fault <spec>', 'Inject a fault, for example create:429:RATE_LIMITED:2 (repeatable)', repeated)
    .addOption(level.default(DEFAULTS.logLevel))
    .optionsGroup('Engine options:')
    .option(
      '--models <path>',
      'Models to serve: a YAML or JSON file, or a folder of *.yaml files (default: previews)',
    )
    .option(
      '--engine <kind=engine>',
      'Engine of a kind, video or image: a command, or a server such as images:<url> (repeatable)',
      repeated,
    )
    .option(
      '--engine-timeout <duration>',
      'Time limit for one run, except for previews; 0 for no limit',
      DEFAULTS.engineTimeout,
    )
    .optionsGroup('Storage options:')
    .addOption(databaseOption())
    .option(
      '--storage <url>',
      'Keep outputs and reference images in an S3 bucket, s3://bucket/prefix (default: files in --data)',
    )
    .option(
      '--retain <duration>',
      'Delete outputs older than this, for example 7d (default: keep everything)',
    )
    .optionsGroup('Server options:')
    .addOption(role.default(DEFAULTS.role))
    .option(
      '--body-limit <size>',
      'Maximum size of a request body: 64MiB, 500kB or bytes',
      DEFAULTS.bodyLimit,
    )
    .option(
      '--trust-proxy <cidr>',
      'Trust X-Forwarded-For from this IP address or CIDR range (repeatable)',
      repeated,
    )
    .option(
      '--metrics-port <port>',
      'Port for Prometheus metrics at /metrics; 0 for any free port (default: no metrics)',
    )
  act(command, serveCommand, { ignoresLocal: true })
}

async function serveCommand(ctx: Context, flags: ServeFlags): Promise<number> {
  const { out, interrupts } = ctx
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError('`rushes serve` cannot be used with --local or --base-url.')
  const settings = readFlags(ctx, flags)
  const { host, port, metricsPort, data, databaseUrl, publicUrl, role } = settings
  const { openModelSet } = await import('../../service/models/model-set.js')
  const models = await openModelSet(settings.models)
  for (const { document, note } of models.models)
    if (note !== undefined) out.note(`${document.name}: ${printable(note)}.`)
  // Other services start without prom-client.
  const metrics =
    metricsPort === undefined
      ? undefined
      : (await import('../../service/http/metrics.js')).createMetrics(ctx.clock)
  const { checkListening } = await import('../../service/http/connections.js')
  await checkListening({ host, port })
  if (metricsPort !== undefined) await checkListening({ host, port: metricsPort }, '--metrics-port')
  const service = await openService(ctx, settings, models, metrics)
  try {
    const measured =
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
      dataFlag: flags.data,
      role,
      metricsUrl: measured?.url,
    })
    await untilAborted(interrupts.first)
    out.note('Shutting down: finishing requests, returning unfinished renders to the queue.')
  } finally {
    // Ctrl-C stops immediately. SIGTERM, which service managers send, first drains the running requests.
    await service.close({ drain: interrupts.first.reason?.by === 'SIGTERM' })
  }
  return EXIT.ok
}

/** Creates the service when its disk has space. It does not listen yet. */
async function openService(
  ctx: Context,
  settings: ServeSettings,
  models: ModelSet,
  metrics: Metrics | undefined,
): Promise<Service> {
  const { out, clock, env } = ctx
  const { createPreviewProcess, createThumbnailProcess, defaultConcurrency, readConsoleFiles } = await import(
    '../context/local-service.js'
  )
  const { createService } = await import('../../service/index.js')
  const storage = await openStorage(ctx, settings.storageUrl)
  const preview = ctx.parts.engine ?? createPreviewProcess()
  const page = settings.hasConsole ? await readConsoleFiles() : undefined
  if (settings.hasConsole && page === undefined)
    out.warn('The console is off: its files are missing from this installation of rushes.')
  const engine = models.createEngine({
    env,
    clock,
    urls: [settings.databaseUrl, settings.storageUrl],
    preview: () => preview,
    // The network is loaded at the first request.
    async fetch(request) {
      const network: Pick<EngineParts, 'fetch'> = { fetch: await ctx.fetch() }
      return await network.fetch(request)
    },
  })
  return createWhenDiskHasSpace(ctx, settings.data, () =>
    createService({
      dataFolder: settings.data,
      databaseUrl: settings.databaseUrl,
      role: settings.role,
      engine,
      models: models.models,
      clock,
      concurrency: settings.concurrency ?? defaultConcurrency(),
      bodyLimitBytes: settings.bodyLimitBytes,
      publicUrl: settings.publicUrl,
      env,
      faults: settings.faults,
      onFault: (words) => printFault(ctx, words),
      retainMs: settings.retainMs,
      trustedProxies: settings.trustedProxies,
      metrics,
      storage,
      console: page,
      thumbnailEngine: page && createThumbnailProcess(),
      logging: {
        level: settings.logLevel,
        write: (text: string) => void ctx.stderr.write(text),
      },
    }),
  )
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
