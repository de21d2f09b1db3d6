/**
 * Finds runs in the journal: by id, key, file or beginning of the id, the last one (`--last`), or all unfinished ones
 * (`--all`). Also finds the service that has them, since a command speaks with one, and their files on this machine.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { checkRunId } from '../../protocol/id.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { addTo } from '../../protocol/parse.js'
import { shortened } from '../../protocol/text.js'
import { isoTime } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { inTurns, variable } from '../process/io.js'
import { settingOf } from '../settings/config-file.js'
import { keyHint } from '../settings/globals.js'
import { LOCAL_ADDRESS } from '../settings/table.js'

/** The id of the run, or the key of a row without one. */
export const nameOfRun = ({ id, key }: JournalRun): string => id ?? key ?? ''

/** Whether the run costs nothing. A local run of a hosted model has a job at its provider. */
export const isFree = ({ address, estimate }: JournalRun): boolean =>
  address === LOCAL_ADDRESS && estimate?.millionths === 0

export const isFinished = ({ phase }: JournalRun): boolean => phase === 'succeeded' || phase === 'failed'

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
export const isOnDisk = ({ path, bytes }: DownloadedFile): boolean => sizeOf(path) === bytes

/** Minimum length of the beginning of an id that names a run. */
const MIN_BEGINNING = 4

/**
 * Whether the beginning may be the id of another run: a service that counts its runs has both 1234 and 12345, and the
 * journal does not know the runs of other machines.
 */
export const isOtherId = (beginning: string, id: string): boolean =>
  /\d$/.test(beginning) && /^\d+$/.test(id.slice(beginning.length)) && !/\d[a-z]/i.test(id)

const MAX_LISTED = 10

/**
 * Returns the run that a word names: by its id, preferably at the current address, by its key, also without the `~`, by
 * the path of one of its files, or by the beginning of its id. Throws `usage` if several ids begin so, or if several
 * addresses have the id.
 */
export async function findRun(ctx: Context, journal: Journal, name: string): Promise<JournalRun | undefined> {
  const here = await addressOr(ctx)
  const known =
    runWithId(ctx, journal, name, here) ??
    journal.findByKey(name.startsWith('~') ? name : `~${name}`) ??
    (name.includes('\0') ? undefined : journal.findByFile(resolve(name)))
  if (known !== undefined || name.length < MIN_BEGINNING) return known
  const ids = journal.idsFrom(name)
  const [id, ...others] = ids
  if (id === undefined || ids.some((each) => isOtherId(name, each))) return undefined
  if (others.length === 0) return runWithId(ctx, journal, id, here)
  throw usageError(
    `${ids.length} runs of the journal begin with ${shortened(name)}: ${ids.slice(0, MAX_LISTED).join(', ')}` +
      `${ids.length > MAX_LISTED ? ', …' : '.'}`,
    'Give more characters of the id.',
  )
}

/** The flag that selects the service. */
export const flagOf = (address: string): string =>
  address === LOCAL_ADDRESS ? '--local' : `--base-url ${quoteWord(address)}`

const placeOf = (address: string): string => `at ${address === LOCAL_ADDRESS ? 'the local service' : address}`

/** Throws `usage` if the run is not at the current address, and there is one with this id at several others. */
function runWithId(
  { globals }: Context,
  journal: Journal,
  id: string,
  here: string | undefined,
): JournalRun | undefined {
  const run = here === undefined ? undefined : journal.find(here, id)
  const [first, other] = run === undefined ? journal.findAtEveryAddress(id) : [run]
  // An address on the command line is used for all ids.
  if (first === undefined || other === undefined || globals.baseUrl !== undefined) return first
  throw usageError(
    `There is a run ${id} ${placeOf(first.address)}, and another one ${placeOf(other.address)}. Nothing was sent.`,
    `Use ${flagOf(first.address)} or ${flagOf(other.address)}.`,
  )
}

/**
 * Returns the run that a word names. Throws `usage` if there is none, or if the run is at another address than the line
 * says.
 */
export async function rowOf(ctx: Context, journal: Journal, name: string): Promise<JournalRun> {
  const run = await findRun(ctx, journal, name)
  if (run === undefined)
    throw usageError(
      `${shortened(name)} is not in the journal.`,
      '`rushes list` shows the runs created on this machine.',
    )
  const { local, baseUrl } = ctx.globals
  if (run.id !== undefined && (local || baseUrl !== undefined) && run.address !== (await addressOr(ctx)))
    throw await livesElsewhere(ctx, run.id, run)
  return run
}

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
        `The journal has no runs ${placeOf(address)}.`,
        '`rushes list` shows the runs of all services.',
      )
}

/** A run of the journal that has an id. */
type RunWithId = JournalRun & { readonly id: string }

const hasId = (run: JournalRun): run is RunWithId => run.id !== undefined

/** Throws `submission_unknown` for a row without an id. */
function checkId(which: string, run: JournalRun): RunWithId {
  if (hasId(run)) return run
  throw new RushesError('submission_unknown', `${which} has no id: ${describe(run)}`, {
    exitCode: EXIT.outcomeUnknown,
    hint: hintFor(run),
  })
}

const describe = ({ key, model, phase, createdAtMs }: JournalRun): string =>
  phase === 'sending'
    ? `${key} (${model}) is being sent by another process.`
    : `${key} (${model}, ${isoTime(createdAtMs)}) is unconfirmed: a run may exist and cost money.`

const hintFor = ({ key = '' }: JournalRun): string => `Check the runs of your account. ${keyHint(key)}`

/**
 * Returns all unfinished runs that have the labels, oldest first: at the current address, or of this machine if no
 * service is configured. Warns about unconfirmed runs, which have no id.
 */
async function allUnfinished(ctx: Context, labels: readonly string[]): Promise<readonly RunWithId[]> {
  const hasLabels = (run: JournalRun) => labels.every((label) => run.labels.includes(label))
  const address = await ctx.findAddress()
  const journal = await ctx.journal()
  for (const run of journal.unconfirmed(address).filter(hasLabels))
    ctx.out.warn(`${describe(run)} This command leaves it as it is. ${hintFor(run)}`)
  const runs = journal.unfinished(address).filter(hasLabels).filter(hasId)
  const withLabels = labels.length === 0 ? '' : ` with the label ${labels.join(' and ')}`
  const where = address === undefined ? 'on this machine' : placeOf(address)
  if (runs.length === 0) ctx.out.note(`No unfinished runs${withLabels} ${where}.`)
  return [...new Map(runs.map((run) => [JSON.stringify([run.address, run.id]), run])).values()]
}

/** Address of this command. Undefined if none is set, or if it is invalid. */
const addressOr = (ctx: Context): Promise<string | undefined> => ctx.findAddress().catch(() => undefined)

/** Where a run of the journal lives. The address is a URL, or `local`. */
type RunHome = Pick<JournalRun, 'address' | 'profile'>

/** Returns the flags with which a command reaches the run. Empty if this context already reaches it. */
export async function flagsToReach(ctx: Context, { address, profile }: RunHome): Promise<readonly string[]> {
  const { globals, env, config, profileName } = ctx
  if (address === LOCAL_ADDRESS) return globals.local ? [] : ['--local']
  // The settings of a profile that was removed cannot be read.
  const isKnown = profile === 'default' || config.profiles().includes(profile)
  const isOther = profile !== profileName && isKnown
  const given = globals.baseUrl ?? variable(env, 'RUSHES_BASE_URL')
  const reached = isOther ? (given ?? settingOf(config.read(profile), 'baseUrl')) : await addressOr(ctx)
  return [
    ...(isOther ? ['--profile', quoteWord(profile)] : []),
    ...(reached === address ? [] : ['--base-url', quoteWord(address)]),
  ]
}

/** Runs of one service, and the context that speaks with it. */
export interface SelectedRuns {
  readonly ctx: Context
  readonly ids: readonly string[]
}

/** Selects the runs of `--last` and `--all`: those of this command's service; without one, the local ones. */
export async function selectRows(
  ctx: Context,
  which: 'last' | { readonly labels: readonly string[] },
): Promise<SelectedRuns> {
  const runs =
    which === 'last' ? [checkId('The last run', await lastRow(ctx))] : await allUnfinished(ctx, which.labels)
  const isHere = (await ctx.findAddress()) !== undefined
  const isLocal = new Map<string, boolean>()
  try {
    for (const run of runs) isLocal.set(run.id, !isHere && (await needsLocal(ctx, await ctx.journal(), run)))
    return inOneSession(ctx, isLocal)
  } catch (error) {
    const next = 'To take the runs of the local service alone, add --local.'
    throw which !== 'last' && error instanceof RushesError ? error.with({ next }) : error
  }
}

/**
 * Selects the runs that the words name. A word that the journal does not know is an id of the service. Local runs are
 * found without `--local`; others are at this command's service. Throws `usage` for a run that is elsewhere and for local
 * runs together with others, and `submission_unknown` for a row without an id.
 */
export async function selectNamed(ctx: Context, names: readonly string[]): Promise<SelectedRuns> {
  // Without a readable journal, every word is an id. Commands that need the journal report its error.
  const journal = await ctx.journal().catch(() => undefined)
  const isLocal = new Map<string, boolean>()
  for await (const name of inTurns(names, ctx.interrupts.first)) {
    const found = journal && (await findRun(ctx, journal, name))
    const run = found && checkId('This run', found)
    if (journal !== undefined && run !== undefined) isLocal.set(run.id, await needsLocal(ctx, journal, run))
    else {
      isLocal.set(checkRunId(name), false)
      if ((await ctx.findAddress()) === undefined) throw unknownRun(name, ctx.missingError([]))
    }
  }
  return inOneSession(ctx, isLocal)
}

/** A word that is neither in the journal, nor can be asked of a service. It may be mistyped. */
const unknownRun = (name: string, error: RushesError): RushesError =>
  error.with({
    message: `${shortened(name)} is not in the journal, and no service can be asked. ${error.message}`,
  })

/** Whether only a session of the local service reaches the run. Throws `usage` for a run that is elsewhere. */
async function needsLocal(ctx: Context, journal: Journal, run: RunWithId): Promise<boolean> {
  const here = await addressOr(ctx)
  const isOther = here !== undefined && run.address !== here
  // By its id alone, a run of a file would be taken for the one that has this id here.
  const isAmbiguous = isOther && journal.find(here, run.id) !== undefined
  // An address on the command line is used for all ids: the service may have moved.
  const isReached = ctx.globals.baseUrl !== undefined || (await flagsToReach(ctx, run)).length === 0
  if (isReached && !isAmbiguous) return false
  if (!isAmbiguous && run.address === LOCAL_ADDRESS && ctx.localSession !== undefined) return true
  throw await livesElsewhere(ctx, run.id, run)
}

/** Throws `usage` for local runs together with others. */
function inOneSession(ctx: Context, isLocal: ReadonlyMap<string, boolean>): SelectedRuns {
  const ids = [...isLocal.keys()]
  const local = ids.find((id) => isLocal.get(id))
  const other = ids.find((id) => !isLocal.get(id))
  if (local !== undefined && other !== undefined)
    throw usageError(
      `${local} was created by the local service, and ${other} is not one of its runs.`,
      'Use a separate command for each of them.',
    )
  return { ctx: (local && ctx.localSession?.()) || ctx, ids }
}

/**
 * Returns the error for a run that this command cannot reach. It names the run's address or profile, and the flag to
 * use.
 */
export async function livesElsewhere(ctx: Context, id: string, run: RunHome): Promise<RushesError> {
  const here = await addressOr(ctx)
  const flags = (await flagsToReach(ctx, run)).join(' ')
  const instead = ctx.globals.local ? ' instead of --local' : ''
  const where =
    here === run.address
      ? `with the profile ${run.profile}`
      : `${placeOf(run.address)}${here === undefined ? '' : `, not ${placeOf(here)}`}`
  return usageError(
    `${id} was created ${where}. Nothing was sent.`,
    ctx.localSession === undefined
      ? `It needs a server that the user starts with \`rushes mcp ${flags}\`${instead}.`
      : `Use ${flags}${instead}.`,
  )
}

/** Finds the files of a run at their download paths. `missing`: number of outputs that no path has any more. */
export function createFileFinder(
  journal: Journal,
): (run: JournalRun) => { readonly files: readonly DownloadedFile[]; readonly missing: number } {
  // A path that several runs wrote has the file of the last one.
  const writers = journal.lastWriters()
  return (run) => {
    // Downloads of one output have the same content; its link may change between them.
    const outputs = new Map<string, DownloadedFile[]>()
    for (const file of journal.filesOf(run)) addTo(outputs, file.sha256, file)
    const files = [...outputs.values()].flatMap(
      (copies) => copies.findLast((file) => isOnDisk(file) && writers.get(file.path) === run.row) ?? [],
    )
    return { files, missing: outputs.size - files.length }
  }
}
