/** `rushes serve`: runs the local service on a port, until a signal stops it. */
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { isDiskFull } from '../../host/file-system.js'
import { quoteWord, variableLine } from '../../host/shell.js'
import { errorCode } from '../../host/system-error.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { ModelDocument } from '../../protocol/models.js'
import type { EngineParts } from '../../service/engines/settings.js'
import { isOnAllAddresses } from '../../service/http/connections.js'
import type { Metrics } from '../../service/http/metrics.js'
import type { ModelSet } from '../../service/models/model-set.js'
import { defaultDocument } from '../../service/models/served-model.js'
import type { Service } from '../../service/options.js'
import { ROLES } from '../../service/rules/names.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import { type ConsoleStart, linkPath } from '../../service/web/sessions.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import {
  DEFAULT_PUBLIC_URL,
  databaseOption,
  openStorage,
  readFlags,
  type ServeFlags,
  type ServeSettings,
} from '../flags/serve.js'
import { choiceOption, repeated } from '../flags/values.js'

export function register(command: Command, { act }: CommandEnvironment): void {
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
    .option(
      '--models <path>',
      'Models to serve: a YAML or JSON file, or a folder of *.yaml files (default: previews)',
    )
    .option(
      '--engine <kind=engine>',
      'Engine of a kind, video or image: a command, or a server such as images:<url> (repeatable)',
      repeated,
    )
    .addOption(databaseOption())
    .option(
      '--storage <url>',
      'Keep outputs and reference images in an S3 bucket, s3://bucket/prefix (default: files in --data)',
    )
    .option(
      '--retain <duration>',
      'Delete outputs older than this, for example 7d (default: keep everything)',
    )
    .addOption(role.default(DEFAULTS.role))
    .option('--body-limit <size>', 'Maximum size of a request body, in MiB or bytes', DEFAULTS.bodyLimit)
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
  const { host, port, metricsPort } = settings
  const { openModelSet } = await import('../../service/models/model-set.js')
  const models = await openModelSet(settings.models)
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
    announce(ctx, {
      url,
      settings,
      service,
      models: models.models.map(({ document }) => document),
      dataFlag: flags.data,
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
  { service: options, storageUrl, hasConsole, concurrency }: ServeSettings,
  models: ModelSet,
  metrics: Metrics | undefined,
): Promise<Service> {
  const { out, clock, env } = ctx
  const { createPreviewProcess, createThumbnailProcess, defaultConcurrency, readConsoleFiles } = await import(
    '../context/local-service.js'
  )
  const { createService } = await import('../../service/index.js')
  const storage = await openStorage(ctx, storageUrl)
  const preview = ctx.parts.engine ?? createPreviewProcess()
  const page = hasConsole ? await readConsoleFiles() : undefined
  if (hasConsole && page === undefined)
    out.warn('The console is off: its files are missing from this installation of rushes.')
  const engine = models.createEngine({
    env,
    clock,
    urls: [options.databaseUrl, storageUrl],
    preview: () => preview,
    warn: out.warn,
    // The network is loaded at the first request.
    async fetch(request) {
      const network: Pick<EngineParts, 'fetch'> = { fetch: await ctx.fetch() }
      return await network.fetch(request)
    },
  })
  return createWhenDiskHasSpace(ctx, options.dataFolder, () =>
    createService({
      ...options,
      engine,
      models: models.models,
      clock,
      concurrency: concurrency ?? defaultConcurrency(),
      env,
      metrics,
      storage,
      console: page,
      thumbnailEngine: page && createThumbnailProcess(),
      log(line, stack) {
        // Not a note: with `--json`, standard error contains only JSON lines.
        out.warn(line)
        if (stack !== undefined) out.debug(stack)
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

/** A service that listens. */
interface Announcement {
  readonly url: string
  readonly settings: ServeSettings
  readonly service: Service
  readonly models: readonly ModelDocument[]
  /** Value of `--data` as typed. */
  readonly dataFlag: string | undefined
  readonly metricsUrl: string | undefined
}

/**
 * Prints the URL, notes and settings of the service. Standard output has the lines that make `rushes run` in another
 * terminal use this service.
 */
function announce(
  { out }: Context,
  { url, settings, service, models, dataFlag, metricsUrl }: Announcement,
): void {
  const { role, dataFolder, databaseUrl, publicUrl } = settings.service
  const { apiKey, console: start } = service
  const base = publicUrl ?? url
  const link = linkOf(base, start)
  const image = defaultDocument(models, 'image')?.name ?? ''
  const video = defaultDocument(models, 'video')?.name ?? ''
  if (out.mode.json) {
    out.json({
      url,
      data: dataFolder,
      ...(apiKey !== undefined && { api_key: apiKey }),
      models: { image, video },
      ...(link !== undefined && { console: link }),
      ...(metricsUrl !== undefined && { metrics_url: metricsUrl }),
    })
    return
  }
  const where = isOnAllAddresses(settings.host) ? `all addresses of this machine, here ${url}` : url
  const headline = role === 'worker' ? `Rendering runs, health checks on ${where}` : `Listening on ${where}`
  out.note(`${headline}. Press Ctrl-C to stop.`)
  out.note(`Data in ${dataFolder}; it is kept when the service stops.`)
  if (databaseUrl !== undefined) out.note(`Database: ${nameOf(databaseUrl)}`)
  if (metricsUrl !== undefined) out.note(`Metrics on ${metricsUrl}`)
  if (role === 'worker') return
  out.note('To use it, run these lines in another terminal:')
  const variables = {
    RUSHES_BASE_URL: url,
    ...(apiKey !== undefined && { RUSHES_API_KEY: apiKey }),
    RUSHES_IMAGE_MODEL: image,
    RUSHES_VIDEO_MODEL: video,
  }
  for (const [name, value] of Object.entries(variables)) out.line(variableLine(name, value))
  const dataWords = dataFlag === undefined ? '' : ` --data ${quoteWord(dataFlag)}`
  const admin = databaseUrl === undefined ? dataWords : ' --database <url>'
  for (const line of consoleLines(base, start, admin)) out.note(line)
  out.note(
    apiKey === undefined
      ? 'The API key (RUSHES_API_KEY) was shown on the first start. ' +
          `Create a new one with \`rushes admin key create --account default${admin}\`.`
      : 'The API key is shown only once. Then try `rushes run image "a fox"`.',
  )
}

const linkOf = (base: string, start: ConsoleStart | undefined): string | undefined =>
  start?.linkToken && `${base}${linkPath(start.linkToken)}`

/**
 * The lines about the console. `base`: of its URLs. `start`: undefined without a console. `where`: the flags of `rushes admin`
 * that select this service.
 */
export function consoleLines(
  base: string,
  start: ConsoleStart | undefined,
  where: string,
): readonly string[] {
  if (start === undefined) return []
  const link = linkOf(base, start)
  if (link !== undefined) return [`Console: ${link}`, 'Single-use sign-in link; expires in 15 minutes.']
  const flags = base === DEFAULT_PUBLIC_URL ? where : `${where} --public-url ${quoteWord(base)}`
  return [
    `Console: ${base}/`,
    `To get a sign-in link: \`rushes admin user link <email>${flags}\`. Its users: \`rushes admin user list${where}\`.`,
  ]
}
