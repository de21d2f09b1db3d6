/** `rushes run video|image|model`: creates runs, waits for them, prints or downloads their outputs. */
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import { KINDS, type Kind, MODEL_INPUTS } from '../../protocol/models.js'
import type { Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { modelOptions, parametersGiven } from '../flags/model-flags.js'
import { wholeNumber } from '../flags/whole-number.js'
import type { RequestOptions, RunRequest } from '../runs/request.js'
import type { CommandEnvironment } from './command-environment.js'

export interface RunOptions {
  readonly request: RequestOptions
  readonly delivery: DeliveryOptions
  /** As it was given. */
  readonly count: string
  readonly wait: boolean
  readonly reuse: boolean
  readonly dryRun: boolean
}

interface Flags extends DeliveryOptions {
  readonly model?: string
  readonly input?: string
  readonly prompt?: string
  readonly promptFile?: string
  readonly count: string
  readonly wait: boolean
  readonly reuse?: boolean
  readonly dryRun?: boolean
}

const MAX_RUNS = 10_000

const input = () =>
  new Option('--input <json>', 'the whole input: JSON, @file or - (flags win over its fields)')

export function register(command: Command, { run }: CommandEnvironment, runRuns = runCommand): void {
  for (const kind of KINDS) {
    const child = command
      .command(kind)
      .description(MODEL_INPUTS[kind].description)
      .argument('[prompt...]', 'what to show; - reads standard input')
    for (const option of modelOptions(kind)) child.addOption(option)
    child.addOption(
      new Option('--prompt-file <path>', 'read the prompt from a file; - is standard input').helpGroup(
        'Model options:',
      ),
    )
    child.addOption(
      new Option('--model <provider/name>', 'identifier published for the model').helpGroup('Model options:'),
    )
    child.addOption(input().helpGroup('Model options:'))
    addRunOptions(child)
    child.action((words: string[], flags: Flags) =>
      run(child, (ctx) =>
        runRuns(ctx, optionsOf(flags, { kind, words, model: flags.model, raw: child.opts() })),
      ),
    )
  }
  const other = command
    .command('model')
    .description('Any other published model; its input comes from --input.')
    .argument('<provider/name>', 'identifier published for the model')
    .addOption(input())
  addRunOptions(other)
  other.action((model: string, flags: Flags) =>
    run(other, (ctx) => runRuns(ctx, optionsOf(flags, { kind: undefined, words: [], model, raw: {} }))),
  )
}

function addRunOptions(command: Command): void {
  command
    .addOption(
      new Option('-n, --count <n>', 'that many runs of the same input')
        .default('1')
        .helpGroup('Run options:'),
    )
    .addOption(
      new Option('--no-wait', 'print the run id as soon as the run exists, and exit').helpGroup(
        'Run options:',
      ),
    )
    .addOption(
      new Option(
        '--reuse',
        'use a succeeded run of the same model and input, and pay nothing, if the journal holds one',
      ).helpGroup('Run options:'),
    )
    .addOption(new Option('--dry-run', 'print the request body that would be sent').helpGroup('Run options:'))
  addDeliveryOptions(command)
  command.addOption(new Option('--open', 'open the result').helpGroup('Result options:'))
}

interface Given {
  readonly kind: Kind | undefined
  readonly words: readonly string[]
  readonly model: string | undefined
  readonly raw: Readonly<Record<string, unknown>>
}

const optionsOf = (flags: Flags, { kind, words, model, raw }: Given): RunOptions => ({
  request: {
    kind,
    model,
    input: flags.input,
    prompt: { words, prompt: flags.prompt, promptFile: flags.promptFile },
    parameters: kind === undefined ? {} : parametersGiven(kind, raw),
  },
  delivery: flags,
  count: flags.count,
  wait: flags.wait,
  reuse: flags.reuse === true,
  dryRun: flags.dryRun === true,
})

export async function runCommand(ctx: Context, options: RunOptions): Promise<number> {
  const { out, globals } = ctx
  const count = wholeNumber(options.count, '--count', 1, MAX_RUNS)
  if (options.request.kind === undefined && options.request.input === undefined)
    throw usageError(
      'The input is missing.',
      `Give it by --input '{"prompt": "..."}', --input @file.json or --input -.`,
    )
  if (
    !options.wait &&
    (options.delivery.output !== undefined ||
      options.delivery.download === true ||
      options.delivery.open === true)
  )
    throw usageError(
      '--no-wait ends before there is an output to download or open.',
      'Leave --no-wait out, or download later: rushes wait <id> -d.',
    )
  const delivery = await deliveryOf(ctx, options.delivery, { runs: options.wait ? count : 1 })
  // Loaded here, since the help does not need it.
  const { buildRequest, encodeRequest } = await import('../runs/request.js')
  const request = await buildRequest(ctx, options.request)
  if (options.dryRun) return await dryRun(ctx, request, count)
  if (request.model === undefined) {
    // Reports everything that is missing at once, the address and the key too.
    await ctx.connect({ missing: request.missing })
    return 0
  }
  encodeRequest(request.model, request.input)
  if (options.wait) {
    const { checkTarget } = await import('../runs/check-target.js')
    checkTarget(delivery, { runs: count, kind: request.kind })
  }
  const connection = await ctx.connect({ render: options.wait })
  const { createAll } = await import('../runs/create-all.js')
  const code = await createAll(ctx, {
    connection,
    delivery,
    count,
    kind: request.kind,
    model: request.model,
    input: request.input,
    wait: options.wait,
    reuse: options.reuse,
  })
  if (!options.wait && globals.local && code === 0)
    out.note('It is rendered when it is waited for: rushes wait --local <id>')
  return code
}

async function dryRun(
  { out }: Context,
  { model, input: body, missing }: RunRequest,
  count: number,
): Promise<number> {
  if (model === undefined)
    throw usageError(`Not set: ${missing.map(({ text }) => text).join('; ')}.`, missing[0]?.hint)
  const { encodeRequest } = await import('../runs/request.js')
  encodeRequest(model, body)
  for (let sent = 0; sent < count; sent++)
    out.json({ model, input: body }, out.stdoutIsTerminal ? 2 : undefined)
  return 0
}
