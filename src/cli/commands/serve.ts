/** `rushes serve`: the local service on a port, until a signal ends it. */
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { parseFault } from '../../service/faults/grammar.js'
import type { Storage } from '../../service/files/contract.js'
import type { Metrics } from '../../service/metrics/index.js'
import { parseNetwork } from '../../service/rules/networks.js'
import type { Context } from '../context/context.js'
import { createWhenDiskHasSpace } from '../context/wait-for-space.js'
import { choiceOption } from '../flags/choice.js'
import { parseDuration } from '../flags/duration.js'
import { addEngineFlags, type EngineFlags, type Engines, enginesOf } from '../flags/engines.js'
import { repeated } from '../flags/repeated.js'
import { wholeNumber } from '../flags/whole-number.js'
import { quoteWord } from '../runs/resume.js'
import { SERVICE_FOLDER } from '../settings/folders.js'
import type { CommandEnvironment } from './command-environment.js'

/** From the least to the most verbose. */
const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
type LogLevel = (typeof LOG_LEVELS)[number]

const MIN_RETENTION_MS = 60_000

export interface ServeOptions extends EngineFlags {
  readonly port: string
  readonly host: string
  readonly data?: string
  readonly concurrency?: string
  readonly publicUrl?: string
  readonly bodyLimit: string
  readonly fault?: readonly string[]
  readonly retain?: string
  readonly trustProxy?: readonly string[]
  readonly logLevel: LogLevel
  readonly logPrompts?: boolean
  readonly metricsPort?: string
  readonly storage?: string
  readonly storageProxy?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, serve = serveCommand): void {
  command
    .addOption(new Option('--port <port>', 'Port to listen on; 0 for any free port').default('7878'))
    .addOption(new Option('--host <address>', 'Address to listen on').default('127.0.0.1'))
    .addOption(new Option('--data <folder>', 'Folder for runs and outputs (default: in the state folder)'))
    .addOption(
      new Option(
        '--concurrency <n>',
        'Number of runs rendered at the same time (default: one per core, at most 4)',
      ),
    )
    .addOption(
      new Option('--public-url <url>', 'Base URL of the outputs (default: the URL that it listens on)'),
    )
    .addOption(new Option('--body-limit <size>', 'Maximum size of a request body').default('64MiB'))
    .addOption(
      new Option(
        '--fault <spec>',
        'Inject a fault, for example create:429:RATE_LIMITED:2 (repeatable)',
      ).argParser(repeated),
    )
    .addOption(
      new Option(
        '--retain <duration>',
        'Delete outputs older than this, for example 7d (default: keep everything)',
      ),
    )
    .addOption(
      choiceOption(
        '--log-level <level>',
        'Log level on standard error: silent, error, warn, info or debug',
        LOG_LEVELS,
      ).default('warn'),
    )
    .addOption(
      new Option(
        '--trust-proxy <cidr>',
        'Trust X-Forwarded-For from this IP address or CIDR range (repeatable)',
      ).argParser(repeated),
    )
    .addOption(new Option('--log-prompts', 'Log prompts too, at level info'))
    .addOption(
      new Option(
        '--metrics-port <port>',
        'Port for Prometheus metrics at /metrics; 0 for any free port (default: no metrics)',
      ),
    )
    .addOption(
      new Option(
        '--storage <url>',
        'Keep outputs and inputs in an S3 bucket, s3://bucket/prefix (default: files in --data)',
      ),
    )
    .addOption(
      new Option('--storage-proxy', 'Stream outputs from the bucket instead of redirecting to signed URLs'),
    )
  addEngineFlags(command).action((flags: ServeOptions) =>
    run(command, (ctx) => serve(ctx, flags), { ignoresLocal: true }),
  )
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
}

function sizeOf(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? []
  const factor = SIZE_UNITS[unit.toLowerCase()]
  const bytes = Math.round(Number(amount) * (factor ?? Number.NaN))
  if (amount !== '' && bytes >= 1) return bytes
  throw usageError(`--body-limit: "${text}" is not a valid size.`, 'Examples: 64MiB, 500kB, 1048576.')
}

const portOf = (text: string, flag: string): number => wholeNumber(text, flag, 0, 65_535)

function publicUrlOf(text: string | undefined): string | undefined {
  if (text === undefined || (/^https?:\/\//i.test(text) && URL.canParse(text))) return text
  throw usageError(`--public-url: "${text}" is not an http or https URL.`)
}

function retainedMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text, '--retain')
  if (ms >= MIN_RETENTION_MS) return ms
  throw usageError(
    `--retain: ${text} is too short; the minimum is 1m.`,
    'To keep everything, leave --retain out.',
  )
}

function networksOf(texts: readonly string[] = []): readonly string[] {
  for (const text of texts)
    if (parseNetwork(text) === undefined)
      throw usageError(
        `--trust-proxy: "${text}" is not an IP address or CIDR range.`,
        'Examples: 10.0.0.7, 10.0.0.0/8.',
      )
  return texts
}

export async function serveCommand(ctx: Context, options: ServeOptions): Promise<number> {
  const { out, interrupts, clock, env, stateFolder } = ctx
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError('`rushes serve` cannot be used with --local or --base-url.')
  const port = portOf(options.port, '--port')
  const metricsPort =
    options.metricsPort === undefined ? undefined : portOf(options.metricsPort, '--metrics-port')
  const bodyLimitBytes = sizeOf(options.bodyLimit)
  const publicUrl = publicUrlOf(options.publicUrl)
  const faults = (options.fault ?? []).map(parseFault)
  const engines = enginesOf(options)
  const retainMs = retainedMs(options.retain)
  const trustedProxies = networksOf(options.trustProxy)
  const { defaultConcurrency, withCommands } = await import('../context/local-service.js')
  const concurrency =
    options.concurrency === undefined
      ? defaultConcurrency()
      : wholeNumber(options.concurrency, '--concurrency', 1, 64)
  const data = resolve(options.data ?? join(stateFolder, SERVICE_FOLDER))
  const { createService } = await import('../../service/index.js')
  const metrics = metricsPort === undefined ? undefined : await createMetrics(clock)
  const storage = await openStorage(ctx, options)
  const service = await createWhenDiskHasSpace(ctx, createService, {
    dataFolder: data,
    engine: withCommands(await ctx.engine(), engines, { env, clock }),
    models: engines.models,
    clock,
    concurrency,
    databaseThread: true,
    bodyLimitBytes,
    publicUrl,
    env,
    faults,
    onFault: (words) => sayFault(ctx, words),
    retainMs,
    trustedProxies,
    metrics,
    storage,
    logging: {
      level: options.logLevel,
      prompts: options.logPrompts ?? false,
      write: (text: string) => void ctx.stderr.write(text),
    },
  })
  try {
    const { host } = options
    const listening =
      metricsPort === undefined ? undefined : await metrics?.listen({ host, port: metricsPort })
    const { url } = await service.listen({ host, port })
    service.startRendering()
    announce(ctx, {
      url,
      data,
      apiKey: service.apiKey,
      models: engines.models,
      dataFlag: options.data,
      metricsUrl: listening?.url,
    })
    await untilAborted(interrupts.first)
    out.note('Shutting down: finishing requests, returning unfinished renders to the queue.')
  } finally {
    await service.close()
  }
  return EXIT.ok
}

/** Loaded here, so that a service without metrics starts without prom-client. */
async function createMetrics(clock: Clock): Promise<Metrics> {
  const metrics = await import('../../service/metrics/index.js')
  return metrics.createMetrics(clock)
}

/** The AWS SDK is loaded for `--storage` alone. */
async function openStorage(
  { env, clock, out }: Context,
  { storage: url, storageProxy = false }: ServeOptions,
): Promise<Storage | undefined> {
  if (url === undefined) {
    if (storageProxy)
      throw usageError('--storage-proxy needs --storage.', 'Example: --storage s3://bucket/prefix')
    return undefined
  }
  const { openS3Storage } = await import('../../service/files/s3-storage.js')
  return await openS3Storage({ url, proxy: storageProxy, env, clock, warn: out.warn })
}

/** Under `--json` standard error has JSON lines, so the note is one of them. */
function sayFault({ out }: Context, words: string): void {
  if (out.mode.json) out.warn(`fault: ${words}`)
  else out.note(`fault: ${words}`)
}

interface Announcement {
  readonly url: string
  readonly data: string
  /** On the first start of a data folder. */
  readonly apiKey: string | undefined
  readonly models: Engines['models']
  /** As it was given. */
  readonly dataFlag: string | undefined
  readonly metricsUrl: string | undefined
}

/** Standard output has the lines that make `rushes run` in another terminal use this service. */
function announce({ out }: Context, { url, data, apiKey, models, dataFlag, metricsUrl }: Announcement): void {
  if (out.mode.json) {
    const { image, video } = models
    out.json({
      url,
      data,
      ...(apiKey !== undefined && { api_key: apiKey }),
      models: { image, video },
      ...(metricsUrl !== undefined && { metrics_url: metricsUrl }),
    })
    return
  }
  out.note(`Listening on ${url}, data in ${data}. Press Ctrl-C to stop.`)
  if (metricsUrl !== undefined) out.note(`Metrics on ${metricsUrl}`)
  out.note('To use it, run these lines in another terminal:')
  const variables = {
    RUSHES_BASE_URL: url,
    ...(apiKey !== undefined && { RUSHES_API_KEY: apiKey }),
    RUSHES_IMAGE_MODEL: models.image,
    RUSHES_VIDEO_MODEL: models.video,
  }
  for (const [name, value] of Object.entries(variables)) out.line(`export ${name}=${quoteWord(value)}`)
  const where = dataFlag === undefined ? '' : ` --data ${quoteWord(dataFlag)}`
  out.note(
    apiKey === undefined
      ? `The API key (RUSHES_API_KEY) was shown on the first start. Create a new one with \`rushes admin key create --account default${where}\`.`
      : 'The API key is shown only once. Then try `rushes run image "a fox"`.',
  )
}
