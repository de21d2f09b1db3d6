/** Flags that select runs: ids, `--last` and `--all`, or the filters of `list` and `gallery`. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import type { JournalRun, ListFilter } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { FAILURE_STATUSES, LOCAL_STATUSES } from '../../protocol/run-state.js'
import { didYouMean, orList, shortened } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { choiceOption, labelFilter, labelsOf } from '../flags/values.js'
import { readIds } from '../process/io.js'
import { lastRow, rowOf, type SelectedRuns, selectNamed, selectRows } from './journal-rows.js'

export interface RunChoice {
  /** Ids as typed. `-` means that the ids are read from standard input. */
  readonly ids: readonly string[]
  readonly last?: boolean | undefined
  /** Undefined for a command that does not have `--all`. */
  readonly all?: boolean | undefined
  /** Labels as typed, for `--all`. */
  readonly label?: readonly string[] | undefined
}

const lastOption = (): Option =>
  new Option('--last', 'Newest run of the current service; of this machine if none is set')

/** Adds the argument for run ids, and the flags that can be used instead. */
export function addRunIds(command: Command, { hasAll = false } = {}): Command {
  command
    .argument('[id...]', 'Run ids, their beginnings, or files of runs; - reads standard input')
    .addOption(lastOption())
  if (!hasAll) return command
  return command
    .addOption(
      new Option(
        '--all',
        'Every unfinished run of the current service; of the local one if none is set',
      ).default(false),
    )
    .addOption(labelFilter())
}

/** Adds the argument for one run, and `--last`. */
export const addRunId = (command: Command): Command =>
  command
    .argument('[id]', 'Run id, its beginning, a file of the run, or a key such as ~3f2a')
    .addOption(lastOption())

/** Returns the run with this name, or with `last` the newest one. Throws `usage` unless one of both is used. */
export async function selectRun(
  ctx: Context,
  name: string | undefined,
  last: boolean | undefined,
): Promise<JournalRun> {
  checkOneWay({ ids: name === undefined ? [] : [name], last })
  return name === undefined ? lastRow(ctx) : rowOf(ctx, await ctx.journal(), name)
}

/** Throws `usage` unless exactly one of ids, `--last` and `--all` is used. */
function checkOneWay({ ids, last = false, all, label }: RunChoice): void {
  const ways = [ids.length > 0, last, all === true].filter(Boolean).length
  if (ways === 1 && (all === true || label === undefined)) return
  const hasAll = all !== undefined
  if (hasAll && label !== undefined)
    throw usageError('--label selects unfinished runs together with --all.', 'Use --all --label <text>.')
  throw usageError(
    ways === 0
      ? 'Missing run ids.'
      : `Run ids${hasAll ? ', --last and --all' : ' and --last'} cannot be used together.`,
    `Give run ids${hasAll ? ', --last or --all' : ' or --last'}. \`rushes list\` shows the runs of this machine.`,
  )
}

/** Returns the selected runs, and the context of their service. Throws `usage`, and `submission_unknown` for a run without an id. */
export async function selectRuns(ctx: Context, choice: RunChoice): Promise<SelectedRuns> {
  checkOneWay(choice)
  if (choice.last === true) return selectRows(ctx, 'last')
  if (choice.all === true) return selectRows(ctx, { labels: labelsOf(choice.label) })
  return selectNamed(ctx, await readIds(choice.ids, ctx.stdin, ctx.interrupts.first))
}

export interface FilterOptions {
  readonly limit: string
  /** Whether only runs of the working folder are selected. */
  readonly here?: boolean
  /** Duration: selects runs that are not older than it. */
  readonly since?: string
  readonly label?: readonly string[]
  /** Path of a manifest. */
  readonly manifest?: string | undefined
  readonly status?: string
  readonly kind?: string
  /** Duration: selects runs that are older than it. */
  readonly before?: string
}

export const sinceOption = (): Option =>
  new Option('--since <duration>', 'Only runs created within this time: 2d, 12h, 30m')

export function addFilterOptions(command: Command, defaults: { readonly limit: string }): Command {
  return command
    .addOption(new Option('--limit <n>', 'Show the newest N; 0 for all').default(defaults.limit))
    .addOption(new Option('--here', 'Only runs of this folder and those below it'))
    .addOption(new Option('--status <status>', 'Only runs with this status, such as unconfirmed'))
    .addOption(choiceOption('--kind <kind>', 'Only runs of this kind: video, image', KINDS))
    .addOption(sinceOption())
    .addOption(labelFilter())
}

function limitOf(text: string): number | undefined {
  if (!/^\d{1,9}$/.test(text))
    throw usageError(`--limit: "${text}" is not a whole number.`, 'Use 0 to show all runs.')
  return Number(text) || undefined
}

/** Of the journal, of the local service, and what services call running and failed. */
const STATUSES: readonly string[] = [
  ...['sending', 'accepted', 'unconfirmed', 'pending', 'starting', 'running', 'in_progress', 'in_queue'],
  ...LOCAL_STATUSES,
  ...FAILURE_STATUSES,
]

/** Throws `usage` for a status that is not known, and that no run of the journal has: each service has its own. */
async function checkStatus(ctx: Context, status: string): Promise<void> {
  const known = [...STATUSES, ...(ctx.setting('failureStatuses')?.split(',') ?? [])]
  if (known.some((each) => each.trim().toLowerCase() === status.trim().toLowerCase())) return
  if ((await ctx.journal()).list({ status, limit: 1 }).length > 0) return
  throw usageError(
    `Unknown status "${shortened(status, 40)}".${didYouMean(status, known)}`,
    `Use ${orList([...LOCAL_STATUSES, 'unconfirmed'])}, or the status of a run in the journal.`,
  )
}

/** Parses the filter flags. Throws `usage`. */
export async function filterOf(ctx: Context, options: FilterOptions): Promise<ListFilter> {
  const { clock, globals } = ctx
  if (options.status !== undefined) await checkStatus(ctx, options.status)
  const timeBefore = (text: string | undefined, flag: string): number | undefined =>
    text === undefined ? undefined : clock.now() - parseDuration(text, flag, 'Examples: 2d, 12h, 30m.')
  const isCurrentOnly = globals.local || globals.baseUrl !== undefined
  return {
    limit: limitOf(options.limit),
    address: isCurrentOnly ? await ctx.address() : undefined,
    status: options.status,
    kind: options.kind,
    labels: labelsOf(options.label),
    manifest: options.manifest && resolve(options.manifest),
    folder: options.here === true ? resolve('.') : undefined,
    sinceMs: timeBefore(options.since, '--since'),
    beforeMs: timeBefore(options.before, '--before'),
  }
}
