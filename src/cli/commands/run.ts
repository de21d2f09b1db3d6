/** `rushes run video|image|model`: creates runs, waits for them, and prints or downloads their outputs. */
import { Command, CommanderError, Help, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { RunEstimate } from '../../journal/index.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { isModelName, KINDS, type Kind, type ModelDocument, type ModelSchema } from '../../protocol/models.js'
import { builtInSchema, flagsOf } from '../../protocol/parameters.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { printable, shortened } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { labelOption, labelsOf } from '../flags/labels.js'
import { modelOptions, parametersGiven } from '../flags/model-flags.js'
import { wholeNumber } from '../flags/values.js'
import { GLOBAL_OPTIONS } from '../help/format-help.js'
import { unknownFlag, usageOf } from '../help/usage-errors.js'
import type { RequestOptions, RunRequest } from '../runs/request.js'
import { modelFor, wrongKind } from '../settings/required-settings.js'
import { plural } from '../terminal/format.js'

/** Values of the flags, not checked yet. */
interface RunFlags extends DeliveryOptions {
  readonly help?: boolean
  readonly model?: string
  readonly input?: string
  readonly prompt?: string
  readonly promptFile?: string
  readonly count: string
  readonly wait: boolean
  readonly dryRun?: boolean
  readonly maxCost?: string
  readonly label?: readonly string[]
  /** Whether many runs are created without a confirmation. */
  readonly yes?: boolean
}

const MAX_RUNS = 10_000
/** On a terminal, more runs than this need a confirmation. */
const MAX_UNASKED_RUNS = Number(DEFAULTS.unaskedRuns)

const INPUT = ['--input <json>', 'Whole input: JSON, @file or -; flags override it'] as const

export function register(command: Command, environment: CommandEnvironment, runRuns = runCommand): void {
  for (const kind of KINDS) registerKind(command, kind, environment, runRuns)
  const other = command
    .command('model')
    .description('Create a run of any other model; its input comes from --input')
    .argument('<provider/name>', 'Identifier published for the model')
    .addOption(new Option(...INPUT))
  addRunOptions(other)
  other.action((model: string, flags: RunFlags) =>
    environment.run(other, async (ctx) => {
      const line = { kind: undefined, schema: undefined, words: [], model, raw: {} }
      await (await ctx.models()).refreshIfOld()
      return runRuns(ctx, requestOf(flags, line), flags)
    }),
  )
}

/**
 * The flags of a model follow from its document, which is known only when the settings are read. So commander collects them
 * as unknown ones, and the words of the command are then read again.
 */
function registerKind(
  parent: Command,
  kind: Kind,
  { run }: CommandEnvironment,
  runRuns: typeof runCommand,
): void {
  const option = (flags: string, about: string) => new Option(flags, about).helpGroup('Model options:')
  const command = parent
    .command(kind)
    .description(builtInSchema(kind).description)
    .argument('[prompt...]')
    .allowUnknownOption()
    .helpOption(false)
    // A prompt stays text, also one that looks like a flag.
    .addOption(option('--prompt <text>', '').hideHelp())
    .addOption(option('--model <provider/name>', 'Model to use (default: the setting of the kind)'))
    .addOption(option('--prompt-file <path>', 'Read the prompt from a file; - is standard input'))
    .addOption(option(...INPUT))
    .addOption(new Option('-h, --help', 'Print this help').helpGroup(GLOBAL_OPTIONS))
  addRunOptions(command)
  let words: readonly string[] = []
  command.parseOptions = (given) => {
    words = given
    return Command.prototype.parseOptions.call(command, given)
  }
  showFlagsOf(command, builtInSchema(kind))
  command.action((_, { help = false, model: typed }: RunFlags) =>
    help
      ? run(command, (ctx) => printHelp(ctx, command, kind, typed), { createsProfile: true })
      : run(command, async (ctx) => {
          const model = await modelOfLine(ctx, kind, typed)
          const { flags, request } = readFlags(command, words, kind, model)
          return runRuns(ctx, request, flags)
        }),
  )
}

/** The help and the completion show the flags of this model. */
function showFlagsOf(command: Command, schema: ModelSchema): void {
  command.configureHelp({
    ...command.configureHelp(),
    visibleOptions(each) {
      return [...modelOptions(schema), ...Help.prototype.visibleOptions.call(this, each)]
    },
  })
}

interface ModelOfLine {
  readonly name: string | undefined
  /** Undefined if it is not known. */
  readonly document: ModelDocument | undefined
}

/** Throws `usage` for a model of another kind. */
async function modelOfLine(ctx: Context, kind: Kind, typed: string | undefined): Promise<ModelOfLine> {
  const models = await ctx.models()
  await models.refreshIfOld()
  const name = typed ?? (await modelFor(ctx, kind))
  const document = name === undefined ? undefined : models.find(name)
  if (document !== undefined && document.kind !== kind) throw wrongKind(document, kind, typed !== undefined)
  return { name, document }
}

function readFlags(
  command: Command,
  words: readonly string[],
  kind: Kind,
  { name, document }: ModelOfLine,
): { readonly flags: RunFlags; readonly request: RequestOptions } {
  const schema = document?.input ?? builtInSchema(kind)
  const named =
    name === undefined || !isModelName(name) ? undefined : { name, isKnown: document !== undefined }
  const reader = new Command(kind).copyInheritedSettings(command).configureHelp({}).argument('[prompt...]')
  reader.parent = command.parent
  const ofModel = modelOptions(schema)
  for (const option of [
    ...ofModel,
    ...command.options.filter(({ long }) => !ofModel.some((each) => each.long === long)),
  ])
    reader.addOption(option)
  try {
    const { operands, unknown } = reader.parseOptions([...words])
    const [flag] = unknown
    if (flag !== undefined) throw unknownFlag(flag, reader, named)
    const flags: RunFlags = reader.opts()
    const line = { kind, schema, words: operands, model: flags.model, raw: reader.opts() }
    return { flags, request: requestOf(flags, line) }
  } catch (error) {
    throw error instanceof CommanderError ? usageOf(error, reader, named) : error
  }
}

async function findForHelp(
  ctx: Context,
  kind: Kind,
  typed: string | undefined,
): Promise<ModelDocument | undefined> {
  try {
    const name = typed ?? (await modelFor(ctx, kind))
    return name === undefined ? undefined : (await ctx.models()).find(name)
  } catch {
    return undefined
  }
}

/** Asks no service. Settings that cannot be read do not keep the help back. */
async function printHelp(
  ctx: Context,
  command: Command,
  kind: Kind,
  typed: string | undefined,
): Promise<number> {
  const document = ctx.globals.engine === undefined ? await findForHelp(ctx, kind, typed) : undefined
  if (document?.kind === kind) {
    command.description(describeModel(document))
    showFlagsOf(command, document.input)
  } else if (typed !== undefined && document !== undefined) throw wrongKind(document, kind, true)
  else if (typed !== undefined && isModelName(typed))
    command.description(
      `${typed}: its parameters are not known here. These are the built-in ones of ${kind} models.`,
    )
  command.outputHelp()
  return EXIT.ok
}

/** The rare ones are last. */
function addRunOptions(command: Command): void {
  const option = (flags: string, about: string) => new Option(flags, about)
  addDeliveryOptions(command)
  for (const each of [
    option('-n, --count <n>', 'Number of runs of the same input').default(DEFAULTS.count),
    option('--dry-run', 'Print the request body that would be sent'),
    option('--max-cost <amount>', 'Exit with 2 if the estimate is higher, or unknown'),
    option('--no-wait', 'Print the run id and exit as soon as it is created'),
    labelOption('Label in the journal (repeatable); never sent'),
    option('--yes', `Do not ask before creating more than ${MAX_UNASKED_RUNS} runs`),
  ])
    command.addOption(each.helpGroup('Run options:'))
}

/** Describes a model for its help. Names the parameters without a flag. */
function describeModel({ name, input: schema }: ModelDocument): string {
  const flags = flagsOf(schema)
  const others = Object.keys(schema.properties).filter((each) => !flags.has(each))
  const about = shortened(printable(schema.description), 300)
  return [
    about === '' ? `The model ${name}` : `${name}: ${about}`,
    ...(others.length === 0 ? [] : [`Set with --input: ${others.join(', ')}`]),
  ].join('\n\n')
}

interface CommandInput {
  readonly kind: Kind | undefined
  /** Undefined if the command has no flags for parameters. */
  readonly schema: ModelSchema | undefined
  readonly words: readonly string[]
  readonly model: string | undefined
  readonly raw: Readonly<Record<string, unknown>>
}

const requestOf = (flags: RunFlags, { schema, words, raw, ...named }: CommandInput): RequestOptions => ({
  ...named,
  input: flags.input,
  prompt: { words, prompt: flags.prompt, promptFile: flags.promptFile },
  parameters: schema === undefined ? {} : parametersGiven(schema, raw),
})

export async function runCommand(ctx: Context, requested: RequestOptions, flags: RunFlags): Promise<number> {
  const { wait, dryRun: isDryRun = false, yes = false } = flags
  const count = wholeNumber(flags.count, '--count', 1, MAX_RUNS)
  if (requested.kind === undefined && requested.input === undefined)
    throw usageError(
      'Missing input.',
      `Use --input '{"prompt": "a red fox"}', --input @file.json or --input -.`,
    )
  if (!wait && (flags.output !== undefined || flags.download === true || flags.show === true))
    throw usageError(
      '--no-wait cannot be used with -d, -o or --show.',
      'Leave out --no-wait, or download later with `rushes wait <id> -d`.',
    )
  const delivery = await deliveryOf(ctx, flags, { runs: wait ? count : 1 })
  const labels = labelsOf(flags.label)
  // Loaded here because the help does not need it.
  const { buildRequest } = await import('../runs/request.js')
  const { checkMaxCost, inCurrency, maxCostOf, openPrices, sumOfRuns } = await import('../models/prices.js')
  const maxCost = await maxCostOf(ctx, flags.maxCost)
  const request = await buildRequest(ctx, requested)
  const { model, body } = request
  const prices = await openPrices(ctx)
  const estimate = () => (model === undefined ? undefined : prices.estimate({ ...request, model }))
  const estimateText = (runs: number, end = '') =>
    estimate() === undefined
      ? `No estimate: ${model} has no price${inCurrency(prices.currency)}.`
      : `Estimate: ${amountText(sumOfRuns(estimate(), runs).millionths, prices.currency)}${end}.`
  const checkLimit = async (runs: number) => {
    if (model !== undefined && maxCost !== undefined && !isDryRun) await prices.renew([model])
    checkMaxCost(sumOfRuns(estimate(), runs), maxCost, prices.currency, [model ?? ''])
  }
  if (isDryRun) {
    await dryRun(ctx, request, { count, estimate: estimate() })
    const why = ctx.globals.local && estimate()?.millionths === 0 ? ', because local runs are free' : ''
    ctx.out.note(estimateText(count, ` for ${plural(count, 'run')}${why}`))
    await checkLimit(count)
    return 0
  }
  if (model === undefined || body === undefined) throw await ctx.missingError(request.missing)
  if (wait) {
    const { checkTarget } = await import('../runs/check-target.js')
    checkTarget(ctx, delivery, { runs: count, kind: request.kind })
  }
  await checkLimit(count)
  if (count > MAX_UNASKED_RUNS && !yes) {
    const { confirm } = await import('../terminal/confirm.js')
    // Asks only on a terminal: a script that requests many runs does so on purpose.
    const answer = await confirm(ctx, `Create ${count} runs of ${model}? ${estimateText(count)}`)
    if (answer === 'no') {
      ctx.out.note('No run was created. --yes skips this question.')
      return EXIT.usage
    }
    if (answer === 'not asked') ctx.out.note(`Creating ${count} runs of ${model}. ${estimateText(count)}`)
  }
  const connection = await ctx.connect({ render: wait })
  const { createRuns } = await import('../runs/create-runs.js')
  return createRuns(ctx, {
    connection,
    delivery,
    count,
    kind: request.kind,
    model,
    input: request.input,
    media: request.media,
    body,
    wait,
    labels,
    estimate,
    checkLimit,
  })
}

/** Prints the request bodies. `estimate`: of one run. */
async function dryRun(
  { out }: Context,
  { model, input, missing }: RunRequest,
  { count, estimate }: { readonly count: number; readonly estimate: RunEstimate | undefined },
): Promise<void> {
  if (model === undefined)
    throw usageError(
      `Not set: ${missing.map(({ text }) => text).join(', ')}.`,
      `${missing[0]?.hint} To use a model of this machine, add --local.`,
    )
  const { millionths = null, currency = null } = estimate ?? {}
  const estimated = { estimate: millionths && amountOf(millionths), currency }
  for (let index = 0; index < count; index++)
    out.json({ model, input, ...(out.mode.json && estimated) }, out.stdoutIsTerminal ? 2 : undefined)
}
