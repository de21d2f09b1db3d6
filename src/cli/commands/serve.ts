/** `rushes serve`: the local service on a port, until a signal ends it. */
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { untilAborted } from '../../host/abort.js'
import { parseFault } from '../../service/faults/grammar.js'
import { parseNetwork } from '../../service/rules/networks.js'
import type { Context } from '../context/context.js'
import { choiceOption } from '../flags/choice.js'
import { parseDuration } from '../flags/duration.js'
import { addEngineFlags, type EngineFlags, type Engines, enginesOf } from '../flags/engines.js'
import { repeated } from '../flags/repeated.js'
import { wholeNumber } from '../flags/whole-number.js'
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
}

export function register(command: Command, { run }: CommandEnvironment, serve = serveCommand): void {
  command
    .addOption(new Option('--port <port>', '0 takes a free one').default('7878'))
    .addOption(new Option('--host <address>', 'the address to listen on').default('127.0.0.1'))
    .addOption(
      new Option('--data <folder>', 'where runs and outputs are kept (default: in the state folder)'),
    )
    .addOption(
      new Option('--concurrency <n>', 'how many runs are rendered at once (default: one a core, at most 4)'),
    )
    .addOption(
      new Option('--public-url <url>', 'what output URLs begin with (default: the address it listens on)'),
    )
    .addOption(new Option('--body-limit <size>', 'the largest request body').default('64MiB'))
    .addOption(
      new Option(
        '--fault <spec>',
        'what goes wrong on purpose, as in create:429:RATE_LIMITED:2 (repeatable)',
      ).argParser(repeated),
    )
    .addOption(
      new Option('--retain <duration>', 'remove outputs that are older, as 7d (default: keep everything)'),
    )
    .addOption(
      choiceOption(
        '--log-level <level>',
        'what is logged on standard error: silent, error, warn, info or debug',
        LOG_LEVELS,
      ).default('warn'),
    )
    .addOption(
      new Option(
        '--trust-proxy <cidr>',
        'a proxy whose X-Forwarded-For is believed, by address or network (repeatable)',
      ).argParser(repeated),
    )
    .addOption(new Option('--log-prompts', 'log prompts too, at level info'))
  addEngineFlags(command).action((flags: ServeOptions) => run(command, (ctx) => serve(ctx, flags)))
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
  throw usageError(`--body-limit ${text}: is no size.`, 'Write it as 64MiB, 500kB or a number of bytes.')
}

function publicUrlOf(text: string | undefined): string | undefined {
  if (text === undefined || (/^https?:\/\//i.test(text) && URL.canParse(text))) return text
  throw usageError(`--public-url ${text}: is no http or https URL.`)
}

function retainedMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text, '--retain')
  if (ms >= MIN_RETENTION_MS) return ms
  throw usageError(`--retain ${text}: must be a minute at least.`, 'Leave it out to keep everything.')
}

function networksOf(texts: readonly string[] = []): readonly string[] {
  for (const text of texts)
    if (parseNetwork(text) === undefined)
      throw usageError(
        `--trust-proxy ${text}: is no address and no network.`,
        'Write it as 10.0.0.7 or 10.0.0.0/8.',
      )
  return texts
}

export async function serveCommand(ctx: Context, options: ServeOptions): Promise<number> {
  const { out, interrupts, clock, env, stateFolder } = ctx
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError('serve takes neither --local nor --base-url: it is the service.')
  const port = wholeNumber(options.port, '--port', 0, 65_535)
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
  const service = await createService({
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
    logging: {
      level: options.logLevel,
      prompts: options.logPrompts ?? false,
      write: (text: string) => void ctx.stderr.write(text),
    },
  })
  try {
    const { url } = await service.listen({ host: options.host, port })
    service.startRendering()
    announce(ctx, { url, data, apiKey: service.apiKey, models: engines.models })
    await untilAborted(interrupts.first)
    out.note('Ending: what is being answered is finished, what is being rendered is given back.')
  } finally {
    await service.close()
  }
  return EXIT.ok
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
}

function announce({ out }: Context, { url, data, apiKey, models }: Announcement): void {
  if (out.mode.json) {
    out.json({ url, data, ...(apiKey !== undefined && { api_key: apiKey }) })
    return
  }
  out.note(`Listening on ${url}, data in ${data}. Ctrl-C ends it.`)
  out.line(`export RUSHES_BASE_URL=${url}`)
  if (apiKey !== undefined) out.line(`export RUSHES_API_KEY=${apiKey}`)
  out.note(
    apiKey === undefined
      ? 'The API key of this data folder was shown on its first start.'
      : 'The key is shown this once; only its hash is kept.',
  )
  out.note(`Models: ${models.image} and ${models.video} (--model, RUSHES_IMAGE_MODEL, RUSHES_VIDEO_MODEL).`)
}
