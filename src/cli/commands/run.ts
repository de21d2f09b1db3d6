/** `rushes run video|image|model`: creates runs, waits for them, and prints or downloads their outputs. */
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { RunEstimate } from '../../journal/index.js'
import { KINDS, type Kind, type ModelDocument, type ModelSchema } from '../../protocol/models.js'
import { builtInSchema, flagsOf } from '../../protocol/parameters.js'
import { amountOf, amountText } from '../../protocol/price.js'
import { printable, shortened } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { labelOption, labelsOf } from '../flags/labels.js'
import { modelOptions, parametersGiven } from '../flags/model-flags.js'
import { wholeNumber } from '../flags/values.js'
import type { RequestOptions, RunRequest } from '../runs/request.js'
import { plural } from '../terminal/format.js'

/** Values of the flags, not checked yet. */
interface RunFlags extends DeliveryOptions {
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
const MAX_UNASKED_RUNS = 20

const INPUT = ['--input <json>', 'Whole input: JSON, @file or - (flags override its fields)'] as const

export function register(command: Command, { run, model }: CommandEnvironment, runRuns = runCommand): void {
  for (const kind of KINDS) {
    const document = model?.kind === kind ? model : undefined
    const schema = document?.input ?? builtInSchema(kind)
    const child = command
      .command(kind)
      .description(document === undefined ? schema.description : describeModel(document))
      .argument('[prompt...]', 'Text of the prompt; - reads standard input')
    for (const option of modelOptions(schema)) child.addOption(option)
    const option = (flags: string, about: string) => new Option(flags, about).helpGroup('Model options:')
    child
      .addOption(option('--prompt-file <path>', 'Read the prompt from a file; - is standard input'))
      .addOption(option('--model <provider/name>', 'Model to use (default: the setting of the kind)'))
      .addOption(option(...INPUT))
    addRunOptions(child)
    child.action((words: string[], flags: RunFlags) =>
      run(child, (ctx) =>
        runRuns(ctx, requestOf(flags, { kind, schema, words, model: flags.model, raw: child.opts() }), flags),
      ),
    )
  }
  const other = command
    .command('model')
    .description('Create a run of any other model; its input comes from --input')
    .argument('<provider/name>', 'Identifier published for the model')
    .addOption(new Option(...INPUT))
  addRunOptions(other)
  other.action((model: string, flags: RunFlags) =>
    run(other, (ctx) =>
      runRuns(
        ctx,
        requestOf(flags, { kind: undefined, schema: undefined, words: [], model, raw: {} }),
        flags,
      ),
    ),
  )
}

function addRunOptions(command: Command): void {
  const option = (flags: string, about: string) => new Option(flags, about).helpGroup('Run options:')
  command
    .addOption(option('-n, --count <n>', 'Number of runs of the same input').default('1'))
    .addOption(option('--no-wait', 'Print the run id as soon as the run is created, and exit'))
    .addOption(option('--dry-run', 'Print the request body that would be sent'))
    .addOption(
      option('--max-cost <amount>', 'Exit with 2 if the estimate is higher, or if the model has no price'),
    )
    .addOption(
      labelOption('Label the runs in the journal (repeatable); never sent').helpGroup('Run options:'),
    )
    .addOption(option('--yes', `Do not ask before creating more than ${MAX_UNASKED_RUNS} runs`))
  addDeliveryOptions(command)
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
  const [{ openCostLimit }, { inCurrency }] = await Promise.all([
    import('../models/cost-limit.js'),
    import('../models/prices.js'),
  ])
  const limit = await openCostLimit(ctx, { flag: flags.maxCost })
  const { prices } = limit
  const request = await buildRequest(ctx, requested)
  const { model, body } = request
  const estimate = () => prices.estimate(request)
  const sum = () => prices.sum([request], count)
  const estimateText = (end = '') =>
    estimate() === undefined
      ? `No estimate: ${model} has no price${inCurrency(prices.currency)}.`
      : `Estimate: ${amountText(sum().millionths, prices.currency)}${end}.`
  if (isDryRun) {
    const refusal = await limit.check(sum).then(
      () => undefined,
      (error: unknown) => error,
    )
    await dryRun(ctx, request, { count, estimate: estimate() })
    const why = ctx.globals.local && estimate()?.millionths === 0 ? ', because local runs are free' : ''
    ctx.out.note(estimateText(` for ${plural(count, 'run')}${why}`))
    if (refusal !== undefined) throw refusal
    return 0
  }
  if (model === undefined || body === undefined) throw await ctx.missingError(request.missing)
  if (wait) {
    const { checkTarget } = await import('../runs/check-target.js')
    checkTarget(ctx, delivery, { runs: count, kind: request.kind })
  }
  await limit.check(sum)
  if (count > MAX_UNASKED_RUNS && !yes) {
    const question = `Create ${count} runs of ${model}? ${estimateText()}`
    if (!(await isConfirmed(ctx, question))) return EXIT.usage
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
    body,
    wait,
    labels,
    limit,
  })
}

/** Asks only on a terminal: a script that requests many runs does so on purpose. */
async function isConfirmed(ctx: Context, question: string): Promise<boolean> {
  const { confirm } = await import('../terminal/confirm.js')
  const answer = await confirm(ctx, question)
  if (answer === 'no') ctx.out.note('No run was created. --yes skips this question.')
  return answer !== 'no'
}

/** Prints the request bodies. `estimate`: of one run. */
async function dryRun(
  { out }: Context,
  { model, input, missing }: RunRequest,
  { count, estimate }: { readonly count: number; readonly estimate: RunEstimate | undefined },
): Promise<void> {
  if (model === undefined)
    throw usageError(`Not set: ${missing.map(({ text }) => text).join(', ')}.`, missing[0]?.hint)
  const { millionths = null, currency = null } = estimate ?? {}
  const estimated = { estimate: millionths && amountOf(millionths), currency }
  for (let index = 0; index < count; index++)
    out.json({ model, input, ...(out.mode.json && estimated) }, out.stdoutIsTerminal ? 2 : undefined)
}
