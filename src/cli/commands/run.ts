/** `rushes run video|image|model`: creates runs, waits for them, and prints or downloads their outputs. */
import { Command, CommanderError, Help, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { RunEstimate } from '../../journal/index.js'
import {
  builtInSchema,
  isModelName,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelSchema,
} from '../../protocol/models.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { shortened } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { deliveryOf, deliveryOptions } from '../flags/delivery.js'
import {
  type CreateFlags,
  MAX_UNASKED_RUNS,
  modelOptions,
  parametersGiven,
  runOptions,
} from '../flags/model-flags.js'
import { labelsOf, wholeNumber } from '../flags/values.js'
import { GLOBAL_OPTIONS } from '../help/format-help.js'
import { unknownFlag, usageOf } from '../help/usage-errors.js'
import type { CreateRunsOptions } from '../runs/carry-out.js'
import type { RequestOptions, RunRequest } from '../runs/request.js'
import { modelFor, wrongKind } from '../settings/settings.js'
import { plural } from '../terminal/format.js'

/** Values of the flags, not checked yet. */
interface RunFlags extends CreateFlags {
  readonly help?: boolean
  readonly model?: string
  readonly input?: string
  readonly prompt?: string
  readonly promptFile?: string
}

/** What a session of `rushes mcp` adds. */
type McpParts = Partial<Pick<CreateRunsOptions, 'limit' | 'observer' | 'requestId'>>

const MAX_RUNS = 10_000

const INPUT = ['--input <json>', 'Whole input: JSON, @file or -; flags override it'] as const

export function register(command: Command, environment: CommandEnvironment): void {
  for (const kind of KINDS) registerKind(command, kind, environment)
  const other = command
    .command('model')
    .description('Create a run of any other model; its input comes from --input')
    .argument('<provider/name>', 'Identifier published for the model')
    .option(...INPUT)
  for (const option of [...deliveryOptions(), ...runOptions()]) other.addOption(option)
  environment.act(other, (ctx, flags: RunFlags, model: string) =>
    runCommand(
      ctx,
      { kind: undefined, model, input: flags.input, prompt: { words: [] }, parameters: {} },
      flags,
    ),
  )
}

/** What commander has read of a line: the words of the prompt, and what follows from the first flag of a model on. */
type ParsedLine = ReturnType<Command['parseOptions']>

/**
 * The flags of a model follow from its document, which is known only when the settings are read. So commander collects them
 * as unknown ones, and they are read then.
 */
function registerKind(parent: Command, kind: Kind, { act }: CommandEnvironment): void {
  const command = parent
    .command(kind)
    .description(builtInSchema(kind).description)
    .argument('[prompt...]')
    .allowUnknownOption()
    .helpOption(false)
    // A prompt stays text, also one that looks like a flag.
    .addOption(new Option('--prompt <text>').hideHelp())
    .option('--model <provider/name>', 'Model to use (default: the setting of the kind)')
    .option('--prompt-file <path>', 'Read the prompt from a file; - is standard input')
    .option(...INPUT)
    .addOption(new Option('-h, --help', 'Print this help').helpGroup(GLOBAL_OPTIONS))
  for (const option of [...deliveryOptions(), ...runOptions()]) command.addOption(option)
  let line: ParsedLine = { operands: [], unknown: [] }
  command.parseOptions = (words) => {
    line = Command.prototype.parseOptions.call(command, words)
    return line
  }
  showFlagsOf(command, builtInSchema(kind))
  act(command, async (ctx, flags: RunFlags) => {
    const { model, input, prompt, promptFile } = flags
    if (flags.help) return printHelp(ctx, command, kind, model)
    const models = await ctx.models()
    const { words, parameters } = await models.checked(async () =>
      readModelFlags(command, line, kind, await findModel(ctx, kind, model)),
    )
    return runCommand(ctx, { kind, model, input, prompt: { words, prompt, promptFile }, parameters }, flags)
  })
}

/** The help, the completion and the suggestions show the flags of this model. */
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
async function findModel(ctx: Context, kind: Kind, typed: string | undefined): Promise<ModelOfLine> {
  const name = typed ?? (await modelFor(ctx, kind))
  const document = name === undefined ? undefined : (await ctx.models()).find(name)
  if (document !== undefined && document.kind !== kind) throw wrongKind(document, kind, typed !== undefined)
  return { name, document }
}

/** Throws `usage` for a flag or value that the model does not have. */
async function readModelFlags(
  command: Command,
  { operands, unknown }: ParsedLine,
  kind: Kind,
  { name, document }: ModelOfLine,
): Promise<{ readonly words: readonly string[]; readonly parameters: RequestOptions['parameters'] }> {
  const schema = document?.input ?? builtInSchema(kind)
  showFlagsOf(command, schema)
  const reader = new Command(kind).exitOverride().configureOutput({ writeErr: () => {} })
  for (const option of modelOptions(schema)) reader.addOption(option)
  let line: ParsedLine
  try {
    line = reader.parseOptions([...unknown])
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    throw usageOf(error, command)
  }
  const [flag] = line.unknown
  if (flag !== undefined) {
    const isNamed = name !== undefined && isModelName(name)
    throw unknownFlag(flag, command, isNamed ? { name, isKnown: document !== undefined } : undefined)
  }
  return {
    words: [...operands, ...line.operands],
    parameters: parametersGiven(schema, { ...command.opts(), ...reader.opts() }),
  }
}

/** Asks no service. Settings that cannot be read do not keep the help back. */
async function printHelp(
  ctx: Context,
  command: Command,
  kind: Kind,
  typed: string | undefined,
): Promise<number> {
  // The server of an engine is not asked.
  const model = ctx.globals.engine === undefined ? findModel(ctx, kind, typed) : undefined
  const document = (await model?.catch(() => undefined))?.document
  if (document !== undefined) {
    command.description(shortened(`${document.name}: ${document.input.description}`, 300))
    showFlagsOf(command, document.input)
  }
  command.outputHelp()
  return EXIT.ok
}

export async function runCommand(
  ctx: Context,
  requested: RequestOptions,
  flags: CreateFlags,
  session: McpParts = {},
): Promise<number> {
  const { out } = ctx
  const { wait } = flags
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
  const { openCostLimit } = await import('../models/cost-limit.js')
  const limit = session.limit ?? (await openCostLimit(ctx, { flag: flags.maxCost }))
  const { prices } = limit
  const request = await buildRequest(ctx, requested)
  const { model, body, kind } = request
  // Called again after the check of the limit, which may ask the service for its prices.
  const sum = () => prices.sum([request], count)
  const estimateText = (end = '') =>
    prices.estimate(request) === undefined
      ? prices.noEstimateText(model ?? '')
      : `Estimate: ${amountText(sum().millionths, prices.currency)}${end}.`
  if (flags.dryRun === true) {
    let refusal: unknown
    await limit.check(sum).catch((error: unknown) => {
      refusal = error
    })
    const estimate = prices.estimate(request)
    dryRun(ctx, request, count, estimate)
    out.note(estimateText(` for ${plural(count, 'run')}`))
    if (refusal !== undefined) throw refusal
    return EXIT.ok
  }
  if (model === undefined || body === undefined) throw ctx.missingError(request.missing)
  const { checkTarget, createRuns } = await import('../runs/carry-out.js')
  if (wait) checkTarget(delivery, { runs: count, kind })
  await limit.check(sum)
  if (count > MAX_UNASKED_RUNS && flags.yes !== true) {
    const { confirm } = await import('../terminal/confirm.js')
    // Asks only on a terminal: a script that requests many runs does so on purpose.
    const answer = await confirm(ctx, `Create ${count} runs of ${model}? ${estimateText()}`)
    if (answer === 'no') {
      out.note('No run was created. --yes skips this question.')
      return EXIT.usage
    }
    if (answer === 'not asked') out.note(`Creating ${count} runs of ${model}. ${estimateText()}`)
  }
  const connection = await ctx.connect({ render: wait })
  return createRuns(ctx, {
    ...session,
    connection,
    delivery,
    count,
    request: { ...request, model, body },
    wait,
    labels,
    limit,
  })
}

/** Prints the request bodies. `estimate`: of one run. */
function dryRun(
  { out }: Context,
  { model, input, missing }: RunRequest,
  count: number,
  estimate: RunEstimate | undefined,
): void {
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
