/** `rushes forget`: removes rows from the journal. Downloaded files stay. */
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { parseDuration } from '../../protocol/units.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { labelOption } from '../flags/values.js'
import { readIds } from '../process/io.js'
import { isFinished, isFree, lastRow, nameOfRun, rowOf } from '../runs/journal-rows.js'
import { filterOf } from '../runs/run-selection.js'
import { confirm } from '../terminal/confirm.js'
import { plural } from '../terminal/format.js'

interface ForgetOptions {
  readonly names: readonly string[]
  readonly last?: boolean
  readonly all?: boolean
  readonly finished?: boolean
  readonly before?: string
  /** Labels as typed. */
  readonly label?: readonly string[]
  readonly yes?: boolean
}

export function register(command: Command, { run }: CommandEnvironment): void {
  command
    .argument(
      '[id or key...]',
      'Run ids, their beginnings, files, or keys such as ~3f2a; - reads standard input',
    )
    .addOption(
      new Option('--last', 'Select the newest run of the current service; of this machine if none is set'),
    )
    .addOption(new Option('--all', 'Select all runs; with --local or --base-url those of that service'))
    .addOption(new Option('--finished', 'Select runs that succeeded, failed or were canceled'))
    .addOption(new Option('--before <duration>', 'Select runs created longer ago, for example 30d'))
    .addOption(labelOption('Select runs with this label (repeatable: runs with all of them)'))
    .addOption(new Option('--yes', 'Do not ask before removing runs'))
    .action((names: string[], flags: Omit<ForgetOptions, 'names'>) =>
      run(command, (ctx) => forgetCommand(ctx, { ...flags, names })),
    )
}

/** Removes the selected rows, except those that change meanwhile. */
async function forgetCommand(ctx: Context, options: ForgetOptions): Promise<number> {
  const { out } = ctx
  const journal = await ctx.journal()
  const rows = await chosenRows(ctx, journal, options)
  if (options.yes !== true && !(await isConfirmed(ctx, rows, isFiltered(options)))) return EXIT.usage
  const { removed, changed } = journal.remove(rows)
  for (const { before, now } of changed)
    out.error(
      usageError(
        `${nameOfRun(before)} was not removed: it has changed meanwhile ` +
          `(${before.id === now.id ? '' : `${nameOfRun(now)}, `}${now.status}).`,
        `To remove it anyway, use \`rushes forget '${nameOfRun(now)}'\`.`,
      ),
    )
  if (out.mode.json) for (const row of removed) out.json({ forgotten: nameOfRun(row) })
  const [only, ...others] = removed
  if (only !== undefined || changed.length === 0)
    out.note(
      `Removed ${only && others.length === 0 ? nameOfRun(only) : plural(removed.length, 'run')} from the journal.`,
    )
  return changed.length === 0 ? EXIT.ok : EXIT.usage
}

const isFiltered = ({ all, finished, before, label }: ForgetOptions): boolean =>
  all === true || finished === true || before !== undefined || label !== undefined

/** Throws `usage` without a selection (a setting such as `local` only narrows one), and for a name that is not known. */
async function chosenRows(
  ctx: Context,
  journal: Journal,
  options: ForgetOptions,
): Promise<readonly JournalRun[]> {
  const { names, last = false, finished = false, before, label = [] } = options
  const hasFilter = isFiltered(options)
  if ([names.length > 0, last, hasFilter].filter(Boolean).length > 1)
    throw usageError(
      'Run ids and --last cannot be used together, or with --all, --finished, --before or --label.',
      'Give ids or keys, or select runs by flags.',
    )
  if (before !== undefined && parseDuration(before, '--before', AGES) === 0)
    throw usageError('--before: the duration must be longer than 0.', AGES)
  if (hasFilter)
    return journal
      .list(await filterOf(ctx, { limit: '0', label, ...(before !== undefined && { before }) }))
      .filter((run) => run.phase !== 'sending' && (!finished || isFinished(run)))
  if (!last && names.length === 0)
    throw usageError(
      'Missing run ids.',
      'Give ids or keys (`rushes list` shows them), or select runs with --last, --finished, --before 30d, --label or --all.',
    )
  const found: JournalRun[] = last ? [await lastRow(ctx)] : []
  for (const name of await readIds(names, ctx.stdin, ctx.interrupts.first))
    found.push(await rowOf(ctx, journal, name))
  const sending = found.find(({ phase }) => phase === 'sending')
  if (sending === undefined) return found
  throw usageError(
    `${nameOfRun(sending)} is being sent by another process. Nothing was removed.`,
    'When that process ends, the row has an id or is unconfirmed.',
  )
}

const AGES = 'Examples: 12h, 30d.'

/** Whether the row is the only record of a run that may still cost money, or of a paid result. */
const needsConfirmation = (run: JournalRun): boolean =>
  !isFree(run) && !isFinished(run) && run.error?.code !== 'run_not_found'

/**
 * Whether the user confirms the removal. Named runs are removed without a question unless they may cost money. Throws
 * `usage` without a terminal.
 */
async function isConfirmed(ctx: Context, rows: readonly JournalRun[], hasFilter: boolean): Promise<boolean> {
  const unfinished = rows.filter(needsConfirmation)
  if (unfinished.length === 0 && !(hasFilter && rows.length > 0)) return true
  const summary = summaryOf(rows, unfinished)
  const answer = await confirm(ctx, `${summary} Remove ${rows.length === 1 ? 'it' : `all ${rows.length}`}?`)
  if (answer === 'not asked')
    throw usageError(
      `${summary} Nothing was removed.`,
      unfinished.length === 0
        ? 'To remove them without a question, add --yes.'
        : 'If you no longer need the id, add --yes. To remove only finished runs, use `rushes forget --finished --yes`.',
    )
  if (answer === 'no') ctx.out.note('Nothing was removed.')
  return answer === 'yes'
}

function summaryOf(rows: readonly JournalRun[], unfinished: readonly JournalRun[]): string {
  const [first, ...others] = unfinished
  if (first === undefined) return `${plural(rows.length, 'run')} would be removed from the journal.`
  if (others.length > 0)
    return `${unfinished.length} of ${plural(rows.length, 'run')} are unfinished or unconfirmed. They may cost money, and their ids will be lost.`
  const state = first.phase === 'unconfirmed' ? 'unconfirmed' : 'not finished'
  return `${nameOfRun(first)} is ${state} (${first.address}). It may cost money, and its id will be lost.`
}
