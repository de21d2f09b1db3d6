/** Runs of the journal for `--last` and `--all`. */
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { JournalRun } from '../../journal/index.js'
import type { Context } from '../context/context.js'

/** The run created last at the current address, with or without an id. Throws `usage` when there is none. */
export async function lastRow(ctx: Context): Promise<JournalRun> {
  const address = await ctx.address()
  const run = (await ctx.journal()).last(address)
  if (run !== undefined) return run
  throw usageError(
    `No runs were created on this machine at ${nameOf(address)}.`,
    '`rushes list` shows the runs of all services.',
  )
}

/** The id of that run. Throws `submission_unknown` when it has none. */
export async function lastRun(ctx: Context): Promise<string> {
  const run = await lastRow(ctx)
  if (run.id !== undefined) return run.id
  throw new RushesError('submission_unknown', `The last run has no id: ${describe(run)}`, {
    exitCode: EXIT.outcomeUnknown,
    hint: hintFor(run),
  })
}

/** The ids of every unfinished run of the current address, oldest first. Warns about unconfirmed ones, which have no id. */
export async function allUnfinished(ctx: Context): Promise<readonly string[]> {
  const address = await ctx.address()
  const journal = await ctx.journal()
  for (const run of journal.unconfirmed(address))
    ctx.out.warn(`${describe(run)} This command does not wait for it. ${hintFor(run)}`)
  const ids = journal.unfinished(address).flatMap(({ id }) => (id === undefined ? [] : [id]))
  if (ids.length === 0) ctx.out.note(`No unfinished runs at ${nameOf(address)}.`)
  return [...new Set(ids)]
}

const nameOf = (address: string): string => (address === 'local' ? 'the local service' : address)

const describe = ({ key, model, phase, createdAtMs }: JournalRun): string =>
  phase === 'sending'
    ? `${key} (${model}) is being sent by another process.`
    : `${key} (${model}, ${new Date(createdAtMs).toISOString()}) is unconfirmed: a run may exist and cost money.`

const hintFor = ({ key, answer }: JournalRun): string =>
  `${answer?.text === undefined ? '' : `See the response with \`rushes show ${key}\`. `}Check the runs of your account, then remove it from the journal with \`rushes forget ${key} --yes\`.`
