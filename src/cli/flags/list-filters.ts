/** The flags that select runs of the journal, shared by `list` and `gallery`. */
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import type { Journal, ListFilter } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { nearest } from '../../protocol/nearest.js'
import type { Context } from '../context/context.js'
import { choiceOption } from './choice.js'
import { parseDuration } from './duration.js'

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
    text === undefined ? undefined : clock.now() - parseDuration(text, flag)
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

/** A note for a status that no run has. Statuses are the service's own words, so an unknown one is not an error. */
export function noteNearestStatus({ out }: Context, status: string | undefined, journal: Journal): void {
  if (status === undefined) return
  const known = new Set(journal.list({ limit: 1_000 }).map((run) => run.status))
  const near = known.has(status) ? undefined : nearest(status, [...known])
  if (near !== undefined) out.note(`No runs have the status "${status}". Did you mean "${near}"?`)
}
