/** Selects runs: by ids, `--last` and `--all`, or by the filters of `list` and `gallery`. */
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import type { ListFilter } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { FAILURE_STATUSES, LOCAL_STATUSES } from '../../protocol/run-state.js'
import { didYouMean, printable, shortened } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { checkIds, readIds } from '../process/io.js'
import { allUnfinished, lastRun } from '../runs/journal-rows.js'
import { choiceOption, orList } from './values.js'

export interface RunChoice {
  /** As typed; `-` means the ids on standard input. */
  readonly ids: readonly string[]
  readonly last?: boolean | undefined
  /** Undefined: a command without `--all`. */
  readonly all?: boolean | undefined
}

const option = (flags: string, about: string): Option =>
  new Option(flags, about).helpGroup('Selection options:')

export const lastOption = (): Option => option('--last', 'Newest run of the current service')

/** Adds the argument, and the flags that may replace it. */
export function addRunIds(command: Command, { hasAll = false } = {}): Command {
  command
    .argument('[id...]', 'Run ids; - reads them from standard input, one per line')
    .addOption(lastOption())
  return hasAll ? command.addOption(option('--all', 'Every unfinished run of the current service')) : command
}

/** Throws `usage` unless the runs are named in exactly one way. */
export function checkOneWay({ ids, last = false, all }: RunChoice): void {
  const ways = [ids.length > 0, last, all === true].filter(Boolean).length
  if (ways === 1) return
  const hasAll = all !== undefined
  throw usageError(
    ways === 0
      ? 'Missing run ids.'
      : `Run ids${hasAll ? ', --last and --all' : ' and --last'} cannot be used together.`,
    `Give run ids${hasAll ? ', --last or --all' : ' or --last'}. \`rushes list\` shows the runs of this machine.`,
  )
}

/** Throws `usage`, and `submission_unknown` for a last run without an id. */
export async function runIdsOf(ctx: Context, choice: RunChoice): Promise<readonly string[]> {
  checkOneWay(choice)
  if (choice.last === true) return [await lastRun(ctx)]
  if (choice.all === true) return allUnfinished(ctx)
  return checkIds(await readIds(choice.ids, ctx.stdin, ctx.interrupts.first))
}

export interface FilterOptions {
  readonly limit: string
  readonly here: boolean
  readonly status?: string
  readonly kind?: string
  readonly model?: string
  /** Durations: not older than, and older than. */
  readonly since?: string
  readonly before?: string
}

export function addFilterOptions(command: Command, defaults: { readonly limit: string }): Command {
  return command
    .addOption(new Option('--limit <n>', 'Show the newest N; 0 for all').default(defaults.limit))
    .addOption(new Option('--here', 'Only runs of the current service').default(false))
    .addOption(new Option('--status <status>', 'Only runs with this status, such as unconfirmed'))
    .addOption(choiceOption('--kind <kind>', 'Only runs of this kind: video, image', KINDS))
    .addOption(new Option('--model <provider/name>', 'Only runs of this model'))
    .addOption(new Option('--since <duration>', 'Only runs created within this time: 2d, 12h, 30m'))
    .addOption(new Option('--before <duration>', 'Only runs created longer ago than this: 2d, 12h, 30m'))
}

function limitOf(text: string): number | undefined {
  if (!/^\d{1,9}$/.test(text))
    throw usageError(`--limit: "${text}" is not a whole number.`, 'Use 0 to show all runs.')
  return Number(text) || undefined
}

/** Throws `usage`. */
export async function filterOf(ctx: Context, options: FilterOptions): Promise<ListFilter> {
  const { clock, globals } = ctx
  const ago = (text: string | undefined, flag: string): number | undefined =>
    text === undefined ? undefined : clock.now() - parseDuration(text, flag, 'Examples: 2d, 12h, 30m.')
  if (options.status !== undefined) await checkStatus(ctx, options.status)
  const isHere = options.here || globals.local || globals.baseUrl !== undefined
  return {
    limit: limitOf(options.limit),
    address: isHere ? await ctx.address() : undefined,
    status: options.status,
    kind: options.kind,
    model: options.model,
    sinceMs: ago(options.since, '--since'),
    beforeMs: ago(options.before, '--before'),
  }
}

/** Those of the journal and of the local service. */
const OWN_STATUSES = ['sending', 'accepted', 'unconfirmed', ...LOCAL_STATUSES] as const

/** Words of other services for a run that is not finished: a filter on one is valid while no run has it. */
const RUNNING_STATUSES = ['pending', 'starting', 'running', 'in_progress', 'in_queue'] as const

/** Statuses are the service's own words, so each one that a run of the journal has is valid too. Throws `usage`. */
async function checkStatus(ctx: Context, status: string): Promise<void> {
  const added = (await ctx.setting('failureStatuses'))?.split(',') ?? []
  const named: readonly string[] = [...OWN_STATUSES, ...FAILURE_STATUSES, ...added]
  if ([...named, ...RUNNING_STATUSES].some((each) => each.trim().toLowerCase() === status.toLowerCase()))
    return
  const journal = await ctx.journal()
  if (journal.list({ status, limit: 1 }).length > 0) return
  const met = new Set(journal.list({ limit: 1_000 }).map((run) => run.status))
  const listed = [...LOCAL_STATUSES, ...met].map((each) => shortened(printable(each), 40))
  throw usageError(
    `Unknown status "${shortened(status, 40)}".${didYouMean(status, [...listed, ...named])}`,
    `Use ${orList([...new Set([...listed, 'unconfirmed'])])}.`,
  )
}
