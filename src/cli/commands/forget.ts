/** `rushes forget`: removes rows from the journal. Downloaded files stay. */
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { shortened } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { labelOption } from '../flags/values.js'
import { readIds } from '../process/io.js'
import { isFinished, isFree, lastRow, nameOfRun, rowOf } from '../runs/journal-rows.js'
import { filterOf } from '../runs/run-selection.js'
import { idArguments } from '../settings/globals.js'
import { confirm } from '../terminal/confirm.js'
import { plural } from '../terminal/format.js'

interface ForgetFlags {
  readonly last?: boolean
  readonly all?: boolean
  readonly finished?: boolean
  readonly before?: string
  /** Labels as typed. */
  readonly label?: readonly string[]
  readonly yes?: boolean
}

export function register(command: Command, { act }: CommandEnvironment): void {
  command
    .argument(
      '[id or key...]',
      'Run ids, their beginnings, files, or keys such as ~3f2a; - reads standard input',
    )
    .option('--last', 'Select the newest run of the current service; of this machine if none is set')
    .option('--all', 'Select all runs; with --local or --base-url those of that service')
    .option('--finished', 'Select runs that succeeded, failed or were canceled')
    .option('--before <duration>', 'Select runs created longer ago, for example 30d')
    .addOption(labelOption('Select runs with this label (repeatable: runs with all of them)'))
    .option('--yes', 'Do not ask before removing runs')
  act(command, forgetCommand)
}

/** Removes the selected rows, except those that change meanwhile. */
async function forgetCommand(ctx: Context, flags: ForgetFlags, names: readonly string[]): Promise<number> {
  const { out } = ctx
  const journal = await ctx.journal()
  const rows = await chosenRows(ctx, journal, flags, names)
  const isFiltered = names.length === 0 && flags.last !== true
  if (flags.yes !== true && !(await isConfirmed(ctx, rows, isFiltered))) return EXIT.usage
  const { removed, changed } = journal.remove(rows)
  for (const { before, now } of changed)
    out.error(
      usageError(
        `${nameOfRun(before)} was not removed: it has changed meanwhile ` +
          `(${before.id === now.id ? '' : `${nameOfRun(now)}, `}${now.status}).`,
        `To remove it anyway, use \`rushes forget ${idArguments([nameOfRun(now)]).join(' ')}\`.`,
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

const AGES = 'Examples: 12h, 30d.'

/** Throws `usage` without a selection (a setting such as `local` only narrows one), and for a name that is not known. */
async function chosenRows(
  ctx: Context,
  journal: Journal,
  { last = false, all = false, finished = false, before, label }: ForgetFlags,
  names: readonly string[],
): Promise<readonly JournalRun[]> {
  const hasFilter = all || finished || before !== undefined || label !== undefined
  if ([names.length > 0, last, hasFilter].filter(Boolean).length > 1)
    throw usageError(
      'Run ids and --last cannot be used together, or with --all, --finished, --before or --label.',
      'Give ids or keys, or select runs by flags.',
    )
  if (before !== undefined && parseDuration(before, '--before', AGES) === 0)
    throw usageError('--before: the duration must be longer than 0.', AGES)
  if (hasFilter)
    return journal
      .list(await filterOf(ctx, { limit: '0', ...(label && { label }), ...(before && { before }) }))
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

/** Whether the row is the only record of a run that may still cost money, or of a paid result. */
const mayCost = (run: JournalRun): boolean =>
  !isFree(run) && !isFinished(run) && run.error?.code !== 'run_not_found'

/** Maximum length of the names in a question. */
const MAX_NAMES = 300

/**
 * Whether the user confirms the removal. Named runs are removed without a question unless they may cost money. Throws
 * `usage` without a terminal.
 */
async function isConfirmed(ctx: Context, rows: readonly JournalRun[], isFiltered: boolean): Promise<boolean> {
  const risky = rows.filter(mayCost).map(nameOfRun)
  if (risky.length === 0 && !(isFiltered && rows.length > 0)) return true
  const summary =
    risky.length === 0
      ? ''
      : `Unfinished or unconfirmed: ${shortened(risky.join(', '), MAX_NAMES)}. They may cost money, and their ids will be lost. `
  const answer = await confirm(ctx, `${summary}Remove ${plural(rows.length, 'run')} from the journal?`)
  if (answer === 'not asked')
    throw usageError(
      `${summary}Nothing was removed (${plural(rows.length, 'run')}).`,
      'To remove without a question, add --yes. `rushes forget --finished --yes` removes only finished runs.',
    )
  if (answer === 'no') ctx.out.note('Nothing was removed.')
  return answer === 'yes'
}
