/** `rushes list`: lists the runs created on this machine. */
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Journal, ListFilter } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { nearest } from '../../protocol/nearest.js'
import type { Context } from '../context/context.js'
import { choiceOption } from '../flags/choice.js'
import { parseDuration } from '../flags/duration.js'
import { tabRow } from '../terminal/cell-rows.js'
import { signsFor } from '../terminal/charset.js'
import { listCells, listJson } from '../terminal/list-lines.js'
import type { CommandEnvironment } from './command-environment.js'

export interface ListOptions {
  readonly limit: string
  readonly here: boolean
  readonly status?: string
  readonly kind?: string
  readonly model?: string
  /** Durations: not older than, and older than. */
  readonly since?: string
  readonly before?: string
}

export function register(command: Command, { run }: CommandEnvironment, list = listCommand): void {
  command
    .addOption(new Option('--limit <n>', 'show the newest N; 0 for all').default('50'))
    .addOption(new Option('--here', 'only runs of the current service address').default(false))
    .addOption(new Option('--status <status>', 'only runs with this status, such as unconfirmed'))
    .addOption(choiceOption('--kind <kind>', 'only runs of this kind: video, image', KINDS))
    .addOption(new Option('--model <provider/name>', 'only runs of this model'))
    .addOption(new Option('--since <duration>', 'only runs created within this time: 2d, 12h, 30m'))
    .addOption(new Option('--before <duration>', 'only runs created longer ago than this: 2d, 12h, 30m'))
    .action((flags: ListOptions) => run(command, (ctx) => list(ctx, flags)))
}

function limitOf(text: string): number | undefined {
  if (!/^\d{1,9}$/.test(text)) throw usageError(`--limit ${text}: must be a whole number; 0 shows all.`)
  return Number(text) || undefined
}

export async function listCommand(ctx: Context, options: ListOptions): Promise<number> {
  const { out, clock, globals } = ctx
  const ago = (text: string | undefined, flag: string): number | undefined =>
    text === undefined ? undefined : clock.now() - parseDuration(text, flag)
  const isHere = options.here || globals.local || globals.baseUrl !== undefined
  const filter: ListFilter = {
    limit: limitOf(options.limit),
    address: isHere ? await ctx.address() : undefined,
    status: options.status,
    kind: options.kind,
    model: options.model,
    sinceMs: ago(options.since, '--since'),
    beforeMs: ago(options.before, '--before'),
  }
  const journal = await ctx.journal()
  const runs = journal.list(filter)
  if (runs.length === 0 && options.status !== undefined) sayNearest(ctx, options.status, journal)
  if (out.mode.json) for (const run of runs) out.json(listJson(run, journal.filesOf(run)))
  else if (!out.stdoutIsTerminal) for (const run of runs) out.line(tabRow(listCells(run)))
  else if (runs.length === 0) out.note('No runs found.')
  else {
    const { listTable } = await import('../terminal/list-table.js')
    const signs = signsFor(ctx.env)
    for (const line of listTable(runs, {
      nowMs: clock.now(),
      columns: out.columns ?? 80,
      style: out.style.out,
    }))
      out.line(signs(line))
  }
  return EXIT.ok
}

/** Statuses are the service's own words, so an unknown one is not an error. */
function sayNearest({ out }: Context, status: string, journal: Journal): void {
  const known = new Set(journal.list({ limit: 1_000 }).map((run) => run.status))
  const near = known.has(status) ? undefined : nearest(status, [...known])
  if (near !== undefined) out.note(`No runs have the status "${status}". Did you mean "${near}"?`)
}
