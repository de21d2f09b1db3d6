/** `rushes forget`: removes rows from the journal. Downloaded files stay. */
import { type Command, Option } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { parseDuration } from '../../protocol/units.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { labelOption, labelsOf } from '../flags/labels.js'
import { exitCodeOf } from '../process/exit.js'
import { readIds } from '../process/io.js'
import { isFinished, isFree, nameOfRun, rowOf } from '../runs/journal-rows.js'
import { confirm } from '../terminal/confirm.js'
import { plural } from '../terminal/format.js'

export interface ForgetOptions {
  readonly names: readonly string[]
  readonly finished?: boolean
  readonly olderThan?: string
  /** Labels as typed. */
  readonly label?: readonly string[]
  readonly yes?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, forget = forgetCommand): void {
  command
    .argument('[id or key...]', 'Run ids, and keys of unconfirmed rows such as ~3f2a; - reads standard input')
    .addOption(new Option('--finished', 'Select runs that succeeded, failed or were canceled'))
    .addOption(new Option('--older-than <duration>', 'Select runs created longer ago, for example 30d'))
    .addOption(labelOption('Select runs with this label (repeatable: runs with all of them)'))
    .addOption(new Option('--yes', 'Do not ask before removing unfinished or unconfirmed runs'))
    .action((names: string[], flags: Omit<ForgetOptions, 'names'>) =>
      run(command, (ctx) => forget(ctx, { ...flags, names })),
    )
}

/** Removes the selected rows. Reports each row that cannot be removed, and removes the others. */
export async function forgetCommand(ctx: Context, options: ForgetOptions): Promise<number> {
  const { out } = ctx
  const journal = await ctx.journal()
  const errors: RushesError[] = []
  const rows: JournalRun[] = []
  for (const item of await chosenRows(ctx, journal, options)) {
    if (item instanceof RushesError) errors.push(item)
    else if (item.phase === 'sending') errors.push(beingSentError(item))
    else rows.push(item)
  }
  for (const error of errors) out.error(error)
  const isAllowed = options.yes || (await isConfirmed(ctx, rows))
  if (!isAllowed) return EXIT.usage
  const { removed, changed } = journal.remove(rows)
  const changedErrors = changed.map(({ before, now }) => changedError(before, now))
  for (const error of changedErrors) out.error(error)
  if (out.mode.json) for (const row of removed) out.json({ forgotten: nameOfRun(row) })
  const [only] = removed
  if (removed.length === 1 && only !== undefined) out.note(`Removed ${nameOfRun(only)} from the journal.`)
  else if (removed.length > 0 || errors.length + changedErrors.length === 0)
    out.note(`Removed ${plural(removed.length, 'run')} from the journal.`)
  return exitCodeOf([...errors, ...changedErrors])
}

async function chosenRows(
  ctx: Context,
  journal: Journal,
  { names, finished = false, olderThan, label }: ForgetOptions,
): Promise<readonly (JournalRun | RushesError)[]> {
  const { globals, clock } = ctx
  const labels = labelsOf(label)
  const hasFilter = finished || olderThan !== undefined || labels.length > 0
  if (names.length > 0) {
    if (hasFilter)
      throw usageError(
        'Run ids cannot be used with --finished, --older-than or --label.',
        'Give ids or keys, or select runs by flags.',
      )
    const found: (JournalRun | RushesError)[] = []
    for (const name of await readIds(names, ctx.stdin, ctx.interrupts.first))
      found.push(await rowOf(ctx, journal, name).catch(asRowError))
    return found
  }
  if (!hasFilter && !globals.local)
    throw usageError(
      'Missing run ids.',
      'Give ids or keys (`rushes list` shows them), or select runs with --finished, --older-than 30d, --label or --local.',
    )
  const isCurrentOnly = globals.local || globals.baseUrl !== undefined
  const beforeMs = olderThan === undefined ? undefined : clock.now() - ageOf(olderThan)
  return journal
    .list({ address: isCurrentOnly ? await ctx.address() : undefined, beforeMs, labels })
    .filter((run) => run.phase !== 'sending' && (!finished || isFinished(run)))
}

/** Parses the age of `--older-than`. Throws `usage` for 0, which would select every run. */
function ageOf(text: string): number {
  const ms = parseDuration(text, '--older-than', 'Examples: 12h, 30d.')
  if (ms > 0) return ms
  throw usageError('--older-than: the duration must be longer than 0.', 'Examples: 12h, 30d.')
}

const asRowError = (error: unknown): RushesError => {
  if (error instanceof RushesError) return error
  throw error
}

const beingSentError = (run: JournalRun): RushesError =>
  usageError(
    `${nameOfRun(run)} is being sent by another process.`,
    'When that process ends, the row has an id or is unconfirmed.',
  )

/**
 * Error for a row that another process has changed since it was read: the row now has an id or a final status, or its
 * run was found.
 */
const changedError = (before: JournalRun, now: JournalRun): RushesError =>
  usageError(
    `${nameOfRun(before)} was not removed: it has changed meanwhile ` +
      `(${before.id === now.id ? '' : `${nameOfRun(now)}, `}${now.status}).`,
    `To remove it anyway, use \`rushes forget '${nameOfRun(now)}'\`.`,
  )

/** Whether the row is the only record of a run that may still cost money, or of a paid result. */
const needsConfirmation = (run: JournalRun): boolean =>
  !isFree(run) && !isFinished(run) && run.error?.code !== 'run_not_found'

/** Whether the user confirms the removal. Throws `usage` without a terminal. */
async function isConfirmed(ctx: Context, rows: readonly JournalRun[]): Promise<boolean> {
  const toConfirm = rows.filter(needsConfirmation)
  const [first] = toConfirm
  if (first === undefined) return true
  const summary =
    toConfirm.length === 1
      ? `${nameOfRun(first)} is ${first.phase === 'unconfirmed' ? 'unconfirmed' : 'not finished'} (${first.address}).`
      : `${toConfirm.length} of these runs are unfinished or unconfirmed.`
  const answer = await confirm(
    ctx,
    `${summary} ${toConfirm.length === 1 ? 'It may cost money, and its id' : 'They may cost money, and their ids'} ` +
      `will be lost. Remove ${rows.length === 1 ? 'it' : `all ${rows.length}`}?`,
  )
  if (answer === 'yes') return true
  if (answer === 'not asked')
    throw usageError(
      `${summary} Nothing was removed.`,
      'If you no longer need the id, add --yes. To remove only finished runs, use `rushes forget --finished`.',
    )
  ctx.out.note('Nothing was removed.')
  return false
}
