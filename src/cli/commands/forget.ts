/** `rushes forget`: removes rows from the journal. Files of results stay. */
import { type Command, Option } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import type { Context } from '../context/context.js'
import { parseAge } from '../flags/duration.js'
import { exitCodeOf } from '../process/exit.js'
import { readIds } from '../process/stdin.js'
import { isFinished, nameOfRun, rowOf } from '../runs/journal-rows.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { confirm } from '../terminal/confirm.js'
import { plural } from '../terminal/plural.js'
import type { CommandEnvironment } from './command-environment.js'

export interface ForgetOptions {
  readonly names: readonly string[]
  readonly finished: boolean
  readonly olderThan: string | undefined
  readonly yes: boolean
}

interface Flags {
  readonly finished?: boolean
  readonly olderThan?: string
  readonly yes?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, forget = forgetCommand): void {
  command
    .argument('[id or key...]', 'Run ids, and keys of unconfirmed rows such as ~3f2a; - reads standard input')
    .addOption(new Option('--finished', 'Select runs that succeeded or failed'))
    .addOption(new Option('--older-than <duration>', 'Select runs created longer ago, for example 30d'))
    .addOption(new Option('--yes', 'Do not ask before removing unfinished or unconfirmed runs'))
    .action((names: string[], { finished = false, olderThan, yes = false }: Flags) =>
      run(command, (ctx) => forget(ctx, { names, finished, olderThan, yes })),
    )
}

/** Rows that can be removed are, whatever the others are. */
export async function forgetCommand(ctx: Context, options: ForgetOptions): Promise<number> {
  const { out } = ctx
  const journal = await ctx.journal()
  const errors: RushesError[] = []
  const rows: JournalRun[] = []
  for (const item of await chosenRows(ctx, journal, options)) {
    if (item instanceof RushesError) errors.push(item)
    else if (item.phase === 'sending') errors.push(isBeingSent(item))
    else rows.push(item)
  }
  for (const error of errors) out.error(error)
  const isAllowed = options.yes || (await isConfirmed(ctx, rows))
  if (!isAllowed) return EXIT.usage
  const { removed, changed } = journal.remove(rows)
  const stayed = changed.map(({ before, now }) => hasChanged(before, now))
  for (const error of stayed) out.error(error)
  if (out.mode.json) for (const row of removed) out.json({ forgotten: nameOfRun(row) })
  const [only] = removed
  if (removed.length === 1 && only !== undefined) out.note(`Removed ${nameOfRun(only)} from the journal.`)
  else if (removed.length > 0 || errors.length + stayed.length === 0)
    out.note(`Removed ${plural(removed.length, 'run')} from the journal.`)
  return exitCodeOf([...errors, ...stayed])
}

async function chosenRows(
  ctx: Context,
  journal: Journal,
  { names, finished, olderThan }: ForgetOptions,
): Promise<readonly (JournalRun | RushesError)[]> {
  const { globals, clock } = ctx
  const hasFilter = finished || olderThan !== undefined
  if (names.length > 0) {
    if (hasFilter)
      throw usageError(
        'Run ids cannot be used with --finished or --older-than.',
        'Give ids or keys, or select runs by flags.',
      )
    const found: (JournalRun | RushesError)[] = []
    for (const name of await readIds(names, ctx.stdin, ctx.interrupts.first))
      found.push(await rowOf(ctx, journal, name).catch(asRow))
    return found
  }
  if (!hasFilter && !globals.local)
    throw usageError(
      'Missing run ids.',
      'Give ids or keys (`rushes list` shows them), or select runs with --finished, --older-than 30d or --local.',
    )
  const isHere = globals.local || globals.baseUrl !== undefined
  const beforeMs = olderThan === undefined ? undefined : clock.now() - parseAge(olderThan, '--older-than')
  return journal
    .list({ address: isHere ? await ctx.address() : undefined, beforeMs })
    .filter((run) => run.phase !== 'sending' && (!finished || isFinished(run)))
}

const asRow = (error: unknown): RushesError => {
  if (error instanceof RushesError) return error
  throw error
}

const isBeingSent = (run: JournalRun): RushesError =>
  usageError(
    `${nameOfRun(run)} is being sent by another process.`,
    'When that process ends, the row has an id or is unconfirmed.',
  )

/** Another process has written its id, its end, or that it was found. */
const hasChanged = (before: JournalRun, now: JournalRun): RushesError =>
  usageError(
    `${nameOfRun(before)} was not removed: it has changed meanwhile (${before.id === now.id ? '' : `${nameOfRun(now)}, `}${now.status}).`,
    `To remove it anyway, use \`rushes forget ${nameOfRun(now)}\`.`,
  )

/** Its row is the only trace of a run that may still cost money, or bring a result that was paid for. */
const isPrecious = (run: JournalRun): boolean =>
  run.address !== LOCAL_ADDRESS && !isFinished(run) && run.error?.code !== 'run_not_found'

/** Throws `usage` where nobody can be asked. */
async function isConfirmed(ctx: Context, rows: readonly JournalRun[]): Promise<boolean> {
  const precious = rows.filter(isPrecious)
  const [first] = precious
  if (first === undefined) return true
  const what =
    precious.length === 1
      ? `${nameOfRun(first)} is ${first.phase === 'unconfirmed' ? 'unconfirmed' : 'not finished'} (${first.address}).`
      : `${precious.length} of these runs are unfinished or unconfirmed.`
  const answer = await confirm(
    ctx,
    `${what} ${precious.length === 1 ? 'It may cost money, and its id' : 'They may cost money, and their ids'} will be lost. Remove ${rows.length === 1 ? 'it' : `all ${rows.length}`}?`,
  )
  if (answer === 'yes') return true
  if (answer === 'not asked')
    throw usageError(
      `${what} Nothing was removed.`,
      'If you no longer need the id, add --yes. To remove only finished runs, use `rushes forget --finished`.',
    )
  ctx.out.note('Nothing was removed.')
  return false
}
