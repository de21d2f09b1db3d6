/** `rushes forget`: removes rows from the journal. Downloaded files stay. */
import { type Command, Option } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { parseDuration } from '../../protocol/units.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { labelOption, labelsOf } from '../flags/labels.js'
import { exitCodeOf } from '../process/exit.js'
import { readIds } from '../process/io.js'
import { isFinished, isFree, lastRow, nameOfRun, rowOf } from '../runs/journal-rows.js'
import { confirm } from '../terminal/confirm.js'
import { plural } from '../terminal/format.js'

export interface ForgetOptions {
  readonly names: readonly string[]
  readonly last?: boolean
  readonly all?: boolean
  readonly finished?: boolean
  readonly before?: string
  /** Labels as typed. */
  readonly label?: readonly string[]
  readonly yes?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, forget = forgetCommand): void {
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
  const isAllowed = options.yes || (await isConfirmed(ctx, rows, options))
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

const isFiltered = ({ all, finished, before, label }: ForgetOptions): boolean =>
  all === true || finished === true || before !== undefined || label !== undefined

/** Throws `usage` without a selection: a setting such as `local` only narrows one. */
async function chosenRows(
  ctx: Context,
  journal: Journal,
  options: ForgetOptions,
): Promise<readonly (JournalRun | RushesError)[]> {
  const { names, last = false } = options
  const hasFilter = isFiltered(options)
  if ([names.length > 0, last, hasFilter].filter(Boolean).length > 1)
    throw usageError(
      'Run ids and --last cannot be used together, or with --all, --finished, --before or --label.',
      'Give ids or keys, or select runs by flags.',
    )
  if (hasFilter) return filteredRows(ctx, journal, options)
  if (last) return [await lastRow(ctx)]
  if (names.length === 0)
    throw usageError(
      'Missing run ids.',
      'Give ids or keys (`rushes list` shows them), or select runs with --last, --finished, --before 30d, --label or --all.',
    )
  const found: (JournalRun | RushesError)[] = []
  for (const name of await readIds(names, ctx.stdin, ctx.interrupts.first))
    found.push(await rowOf(ctx, journal, name).catch(asRowError))
  return found
}

async function filteredRows(
  ctx: Context,
  journal: Journal,
  { finished = false, before, label }: ForgetOptions,
): Promise<readonly JournalRun[]> {
  const { globals, clock } = ctx
  const labels = labelsOf(label)
  const isCurrentOnly = globals.local || globals.baseUrl !== undefined
  const beforeMs = before === undefined ? undefined : clock.now() - ageOf(before)
  return journal
    .list({ address: isCurrentOnly ? await ctx.address() : undefined, beforeMs, labels })
    .filter((run) => run.phase !== 'sending' && (!finished || isFinished(run)))
}

/** Parses the age of `--before`. Throws `usage` for 0, which would select every run. */
function ageOf(text: string): number {
  const ms = parseDuration(text, '--before', 'Examples: 12h, 30d.')
  if (ms > 0) return ms
  throw usageError('--before: the duration must be longer than 0.', 'Examples: 12h, 30d.')
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

/**
 * Whether the user confirms the removal. Named runs are removed without a question unless they may cost money. Throws
 * `usage` without a terminal.
 */
async function isConfirmed(
  ctx: Context,
  rows: readonly JournalRun[],
  options: ForgetOptions,
): Promise<boolean> {
  const unfinished = rows.filter(needsConfirmation)
  const isAsked = unfinished.length > 0 || (isFiltered(options) && rows.length > 0)
  if (!isAsked) return true
  const summary = summaryOf(rows, unfinished)
  const answer = await confirm(ctx, `${summary} Remove ${rows.length === 1 ? 'it' : `all ${rows.length}`}?`)
  if (answer === 'yes') return true
  if (answer === 'not asked')
    throw usageError(
      `${summary} Nothing was removed.`,
      unfinished.length === 0
        ? 'To remove them without a question, add --yes.'
        : 'If you no longer need the id, add --yes. To remove only finished runs, use `rushes forget --finished --yes`.',
    )
  ctx.out.note('Nothing was removed.')
  return false
}

function summaryOf(rows: readonly JournalRun[], unfinished: readonly JournalRun[]): string {
  const [first] = unfinished
  if (first === undefined) return `${plural(rows.length, 'run')} would be removed from the journal.`
  if (unfinished.length > 1)
    return `${unfinished.length} of ${plural(rows.length, 'run')} are unfinished or unconfirmed. They may cost money, and their ids will be lost.`
  const state = first.phase === 'unconfirmed' ? 'unconfirmed' : 'not finished'
  return `${nameOfRun(first)} is ${state} (${first.address}). It may cost money, and its id will be lost.`
}
