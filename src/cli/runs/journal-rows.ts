/** Finds runs in the journal: by id or key, the last one (`--last`), or all unfinished ones (`--all`). */
import { statSync } from 'node:fs'
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Journal, JournalFile, JournalRun } from '../../journal/index.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { addressOr, livesElsewhere, onlyRun } from './where.js'

/** The id of the run, or the key of a row without one. */
export const nameOfRun = ({ id, key }: JournalRun): string => id ?? key ?? ''

/** Whether the run costs nothing. A local run of a hosted model has a job at its provider. */
export const isFree = ({ address, estimate }: JournalRun): boolean =>
  address === LOCAL_ADDRESS && estimate?.millionths === 0

export const isFinished = ({ phase }: JournalRun): boolean => phase === 'succeeded' || phase === 'failed'

/**
 * Returns the run with this name, preferably at the current address. Accepts a key without its `~`, unless it is the id of
 * a run. Throws `usage`.
 */
export async function rowOf(ctx: Context, journal: Journal, name: string): Promise<JournalRun> {
  const byKey = journal.findByKey(name)
  if (byKey !== undefined) return byKey
  const here = await addressOr(ctx)
  const run = here === undefined ? undefined : journal.find(here, name)
  if (run !== undefined) return run
  const isNamed = ctx.globals.local || ctx.globals.baseUrl !== undefined
  const elsewhere = onlyRun(name, journal)
  if (elsewhere !== undefined) {
    if (isNamed) throw await livesElsewhere(ctx, name, elsewhere)
    return elsewhere
  }
  const byDigits = journal.findByKey(`~${name}`)
  if (byDigits !== undefined) return byDigits
  throw usageError(
    `${shortened(name)} is not in the journal.`,
    '`rushes list` shows the runs created on this machine.',
  )
}

/** Returns the size of a file in bytes; undefined if it does not exist, or is a folder, a pipe or a device. */
export function sizeOf(path: string): number | undefined {
  try {
    const found = statSync(path)
    return found.isFile() ? found.size : undefined
  } catch {
    return undefined
  }
}

/** Whether a downloaded file still exists. Compares only the size: hashing a video would take too long. */
export const isOnDisk = ({ path, bytes }: JournalFile): boolean => sizeOf(path) === bytes

/**
 * Returns the run created last at the current address, with or without an id; the last of this machine if no service is
 * configured. Throws `usage` if there is none.
 */
export async function lastRow(ctx: Context): Promise<JournalRun> {
  const address = await ctx.findAddress()
  const run = (await ctx.journal()).last(address)
  if (run !== undefined) return run
  throw address === undefined
    ? usageError('The journal has no runs.', 'Create one: `rushes run image --local "a red fox"`.')
    : usageError(
        `The journal has no runs at ${nameOf(address)}.`,
        '`rushes list` shows the runs of all services.',
      )
}

/** A run of the journal that has an id. */
export type RunWithId = JournalRun & { readonly id: string }

const hasId = (run: JournalRun): run is RunWithId => run.id !== undefined

/** Returns the last run. Throws `submission_unknown` if it has no id. */
export async function lastRun(ctx: Context): Promise<RunWithId> {
  const run = await lastRow(ctx)
  if (hasId(run)) return run
  throw withoutId('The last run', run)
}

/** Throws `submission_unknown` if one of the ids is the key of a row without an id: the service does not know keys. */
export async function refuseKeys(ctx: Context, ids: readonly string[]): Promise<void> {
  const keys = ids.filter((id) => id.startsWith('~'))
  // Without a readable journal, no key is known.
  const journal = keys.length === 0 ? undefined : await ctx.journal().catch(() => undefined)
  for (const key of keys) {
    const run = journal?.findByKey(key)
    if (run !== undefined && !hasId(run)) throw withoutId('This run', run)
  }
}

const withoutId = (which: string, run: JournalRun): RushesError =>
  new RushesError('submission_unknown', `${which} has no id: ${describe(run)}`, {
    exitCode: EXIT.outcomeUnknown,
    hint: hintFor(run),
  })

/**
 * Returns all unfinished runs that have the labels, oldest first: at the current address, or of this machine if no
 * service is configured. Warns about unconfirmed runs, which have no id.
 */
export async function allUnfinished(ctx: Context, labels: readonly string[]): Promise<readonly RunWithId[]> {
  const hasLabels = (run: JournalRun) => labels.every((label) => run.labels.includes(label))
  const address = await ctx.findAddress()
  const journal = await ctx.journal()
  for (const run of journal.unconfirmed(address).filter(hasLabels))
    ctx.out.warn(`${describe(run)} This command does not wait for it. ${hintFor(run)}`)
  const runs = journal.unfinished(address).filter(hasLabels).filter(hasId)
  const withLabels = labels.length === 0 ? '' : ` with the label ${labels.join(' and ')}`
  const where = address === undefined ? 'on this machine' : `at ${nameOf(address)}`
  if (runs.length === 0) ctx.out.note(`No unfinished runs${withLabels} ${where}.`)
  return [...new Map(runs.map((run) => [JSON.stringify([run.address, run.id]), run])).values()]
}

const nameOf = (address: string): string => (address === 'local' ? 'the local service' : address)

const describe = ({ key, model, phase, createdAtMs }: JournalRun): string =>
  phase === 'sending'
    ? `${key} (${model}) is being sent by another process.`
    : `${key} (${model}, ${new Date(createdAtMs).toISOString()}) is unconfirmed: a run may exist and cost money.`

const hintFor = ({ key, answer }: JournalRun): string =>
  `${answer?.text === undefined ? '' : `See the response with \`rushes show '${key}'\`. `}Check the runs of your ` +
  `account, then remove it from the journal with \`rushes forget '${key}' --yes\`.`
