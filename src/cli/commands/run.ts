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

export interface RunOptions {
  readonly request: RequestOptions
  readonly delivery: DeliveryOptions
  /** Value of the flag, not parsed yet. */
  readonly count: string
  readonly wait: boolean
  readonly reuse: boolean
  readonly dryRun: boolean
  /** Value of the flag, not parsed yet. */
  readonly maxCost: string | undefined
  /** Values of the flag, not checked yet. */
  readonly labels: readonly string[] | undefined
  /** Whether many runs are created without a confirmation. */
  readonly yes: boolean
}

interface RunFlags extends DeliveryOptions {
  readonly model?: string
  readonly input?: string
  readonly prompt?: string
  readonly promptFile?: string
  readonly count: string
  readonly wait: boolean
  readonly reuse?: boolean
  readonly dryRun?: boolean
  readonly maxCost?: string
  readonly label?: readonly string[]
  readonly yes?: boolean
}

const MAX_RUNS = 10_000
/** On a terminal, more runs than this need a confirmation. */
const MAX_UNASKED_RUNS = 20

const input = () => new Option('--input <json>', 'Whole input: JSON, @file or - (flags override its fields)')

export function register(command: Command, { run, model }: CommandEnvironment, runRuns = runCommand): void {
  for (const kind of KINDS) {
    const document = model?.kind === kind ? model : undefined
    const schema = document?.input ?? builtInSchema(kind)
    const child = command
      .command(kind)
      .description(document === undefined ? schema.description : describeModel(document))
      .argument('[prompt...]', 'Text of the prompt; - reads standard input')
    for (const option of modelOptions(schema)) child.addOption(option)
    child.addOption(
      new Option('--prompt-file <path>', 'Read the prompt from a file; - is standard input').helpGroup(
        'Model options:',
      ),
    )
    child.addOption(
      new Option('--model <provider/name>', 'Identifier published for the model').helpGroup('Model options:'),
    )
    child.addOption(input().helpGroup('Model options:'))
    addRunOptions(child)
    child.action((words: string[], flags: RunFlags) =>
      run(child, (ctx) =>
        runRuns(ctx, optionsOf(flags, { kind, schema, words, model: flags.model, raw: child.opts() })),
      ),
    )
  }
  const other = command
    .command('model')
    .description('Any other published model; its input comes from --input')
    .argument('<provider/name>', 'Identifier published for the model')
    .addOption(input())
  addRunOptions(other)
  other.action((model: string, flags: RunFlags) =>
    run(other, (ctx) =>
      runRuns(ctx, optionsOf(flags, { kind: undefined, schema: undefined, words: [], model, raw: {} })),
    ),
  )
}

function addRunOptions(command: Command): void {
  command
    .addOption(
      new Option('-n, --count <n>', 'Number of runs of the same input')
        .default('1')
        .helpGroup('Run options:'),
    )
    .addOption(
      new Option('--no-wait', 'Print the run id as soon as the run is created, and exit').helpGroup(
        'Run options:',
      ),
    )
    .addOption(
      new Option(
        '--reuse',
        'Reuse a succeeded run of the same model and input from the journal, at no cost',
      ).helpGroup('Run options:'),
    )
    .addOption(new Option('--dry-run', 'Print the request body that would be sent').helpGroup('Run options:'))
    .addOption(
      new Option(
        '--max-cost <amount>',
        'Create nothing if the estimate is higher, or if the model has no price',
      ).helpGroup('Run options:'),
    )
    .addOption(
      labelOption('Label the runs in the journal (repeatable); never sent').helpGroup('Run options:'),
    )
    .addOption(
      new Option('--yes', `Do not ask before creating more than ${MAX_UNASKED_RUNS} runs`).helpGroup(
        'Run options:',
      ),
    )
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

const optionsOf = (flags: RunFlags, { kind, schema, words, model, raw }: CommandInput): RunOptions => ({
  request: {
    kind,
    model,
    input: flags.input,
    prompt: { words, prompt: flags.prompt, promptFile: flags.promptFile },
    parameters: schema === undefined ? {} : parametersGiven(schema, raw),
    learn: flags.dryRun !== true,
  },
  delivery: flags,
  count: flags.count,
  wait: flags.wait,
  reuse: flags.reuse === true,
  dryRun: flags.dryRun === true,
  maxCost: flags.maxCost,
  labels: flags.label,
  yes: flags.yes === true,
})

export async function runCommand(ctx: Context, options: RunOptions): Promise<number> {
  const count = wholeNumber(options.count, '--count', 1, MAX_RUNS)
  if (options.request.kind === undefined && options.request.input === undefined)
    throw usageError(
      'Missing input.',
      `Use --input '{"prompt": "a red fox"}', --input @file.json or --input -.`,
    )
  if (
    !options.wait &&
    (options.delivery.output !== undefined ||
      options.delivery.download === true ||
      options.delivery.open === true ||
      options.delivery.show === true)
  )
    throw usageError(
      '--no-wait cannot be used with -d, -o, --open or --show.',
      'Leave out --no-wait, or download later with `rushes wait <id> -d`.',
    )
  const delivery = await deliveryOf(ctx, options.delivery, { runs: options.wait ? count : 1 })
  const labels = labelsOf(options.labels)
  // Loaded here because the help does not need it.
  const { buildRequest, encodeRequest } = await import('../runs/request.js')
  const { checkMaxCost, maxCostOf, openPrices, sumOfRuns } = await import('../models/prices.js')
  const maxCost = await maxCostOf(ctx, options.maxCost)
  const request = await buildRequest(ctx, options.request)
  const { model } = request
  const estimate = model === undefined ? undefined : (await openPrices(ctx)).estimate({ ...request, model })
  const sum = sumOfRuns(estimate, count)
  const total = estimate && amountText(sum.millionths, estimate.currency)
  const checkLimit = () => checkMaxCost(sum, maxCost, estimate?.currency ?? '', [model ?? ''])
  if (options.dryRun) {
    await dryRun(ctx, request, { count, estimate, total })
    checkLimit()
    return 0
  }
  if (model === undefined) {
    // Reports all missing settings in one error, including the service URL and the key.
    await ctx.connect({ missing: request.missing })
    return 0
  }
  encodeRequest(model, request.input)
  if (options.wait) {
    const { checkTarget } = await import('../runs/check-target.js')
    checkTarget(delivery, { runs: count, kind: request.kind })
  }
  // With --reuse, the number of creates is not known yet.
  if (!options.reuse) checkLimit()
  const question = `Create ${count} runs of ${model}?${total === undefined ? '' : ` Estimate: ${total}.`}`
  if (count > MAX_UNASKED_RUNS && !options.yes && !(await isConfirmed(ctx, question))) return EXIT.usage
  const connection = await ctx.connect({ render: options.wait })
  const { createRuns } = await import('../runs/create-runs.js')
  return createRuns(ctx, {
    connection,
    delivery,
    count,
    kind: request.kind,
    model,
    input: request.input,
    wait: options.wait,
    reuse: options.reuse,
    labels,
    estimate,
    maxCost,
  })
}

/** Asks only on a terminal: a script that requests many runs does so on purpose. */
async function isConfirmed(ctx: Context, question: string): Promise<boolean> {
  const { confirm } = await import('../terminal/confirm.js')
  const answer = await confirm(ctx, question)
  if (answer === 'no') ctx.out.note('No run was created. --yes skips this question.')
  return answer !== 'no'
}

interface DryRun {
  readonly count: number
  /** Of one run. Undefined if the model has no price. */
  readonly estimate: RunEstimate | undefined
  /** The estimate of all runs. */
  readonly total: string | undefined
}

async function dryRun(
  { out, globals }: Context,
  { model, input: body, missing }: RunRequest,
  { count, estimate, total }: DryRun,
): Promise<void> {
  if (model === undefined)
    throw usageError(`Not set: ${missing.map(({ text }) => text).join(', ')}.`, missing[0]?.hint)
  const { encodeRequest } = await import('../runs/request.js')
  encodeRequest(model, body)
  const { millionths = null, currency = null } = estimate ?? {}
  const estimated = { estimate: millionths && amountOf(millionths), currency }
  for (let index = 0; index < count; index++)
    out.json({ model, input: body, ...(out.mode.json && estimated) }, out.stdoutIsTerminal ? 2 : undefined)
  const why = globals.local ? ', because local runs are free' : ''
  if (total === undefined) out.note(`No estimate: ${model} has no price.`)
  else out.note(`Estimate: ${total} for ${plural(count, 'run')}${why}.`)
}
