/** Finds the service of runs in the journal: a command speaks with one. */
import { type RushesError, usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import type { Context } from '../context/context.js'
import { inTurns } from '../process/exit.js'
import { variable } from '../process/io.js'
import { settingsOf } from '../settings/config-file.js'
import type { RunHome } from '../settings/settings.js'
import { LOCAL_ADDRESS } from '../settings/table.js'

/** Address of this command. Undefined if none is set, or if it is invalid. */
export const addressOr = (ctx: Context): Promise<string | undefined> =>
  ctx.findAddress().catch(() => undefined)

/** Returns the flags with which a command reaches the run. Empty if this context already reaches it. */
async function flagsFor(ctx: Context, { address, profile }: RunHome): Promise<readonly string[]> {
  const { globals, env, config } = ctx
  if (address === LOCAL_ADDRESS) return globals.local ? [] : ['--local']
  // The settings of a profile that was removed cannot be read.
  const isKnown = profile === 'default' || config.profiles().includes(profile)
  const isOtherProfile = profile !== ctx.profileName && isKnown
  if (isOtherProfile && settingsOf(config.read(profile), ['baseUrl']).baseUrl === address)
    return ['--profile', quoteWord(profile)]
  // Another profile changes the address, unless a flag or a variable sets it.
  const isKept =
    !isOtherProfile || globals.baseUrl !== undefined || variable(env, 'RUSHES_BASE_URL') !== undefined
  const isHere = isKept && (await addressOr(ctx)) === address
  return [
    ...(isOtherProfile ? ['--profile', quoteWord(profile)] : []),
    ...(isHere ? [] : ['--base-url', quoteWord(address)]),
  ]
}

/** Whether no service is configured. Every run is then reached at its own address. */
const hasNoService = async (ctx: Context): Promise<boolean> =>
  (await ctx.findAddress().catch(() => 'not valid')) === undefined

/** Returns the flags for a command that asks the run's service, and creates nothing. */
export const flagsToReach = async (ctx: Context, run: RunHome): Promise<readonly string[]> =>
  (await hasNoService(ctx)) ? [] : flagsFor(ctx, run)

/** Runs of one service, and the context that speaks with it. */
export interface SelectedRuns {
  readonly ctx: Context
  readonly ids: readonly string[]
}

/** Where a run is. `home` is undefined for the service of this command, and for a run that the journal does not know. */
interface FoundRun {
  readonly id: string
  readonly home: RunHome | undefined
}

/** Selects the runs of `--last` and `--all`: those of this command's service, or of the one that has them. */
export async function selectRows(
  ctx: Context,
  runs: readonly (RunHome & { readonly id: string })[],
): Promise<SelectedRuns> {
  const isHere = !(await hasNoService(ctx))
  return inOneSession(
    ctx,
    runs.map((run) => ({ id: run.id, home: isHere ? undefined : run })),
  )
}

/**
 * Selects the runs with these ids. Local ones are found without `--local`; others are at this command's service, or, if
 * none is configured, at their own. Throws `usage` for a run that is elsewhere, and for runs of several services.
 */
export async function selectIds(ctx: Context, ids: readonly string[]): Promise<SelectedRuns> {
  // An address on the command line is used for all ids: the service may have moved.
  if (ctx.globals.baseUrl !== undefined) return { ctx, ids }
  // Without a readable journal, no run is known to be elsewhere. Commands that need the journal report its error.
  const journal = await ctx.journal().catch(() => undefined)
  if (journal === undefined) return { ctx, ids }
  const found: FoundRun[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first))
    found.push({ id, home: await homeOf(ctx, journal, id) })
  return inOneSession(ctx, found)
}

async function homeOf(ctx: Context, journal: Journal, id: string): Promise<RunHome | undefined> {
  const here = await addressOr(ctx)
  const run = (here === undefined ? undefined : journal.find(here, id)) ?? onlyRun(id, journal)
  if (run === undefined || (await flagsFor(ctx, run)).length === 0) return undefined
  const isReached = run.address === LOCAL_ADDRESS || (await hasNoService(ctx))
  if (isReached && ctx.sessionOf !== undefined) return run
  throw await livesElsewhere(ctx, id, run)
}

/** Returns the run with this id, whatever its address. Throws `usage` if there is one at several addresses. */
export function onlyRun(id: string, journal: Journal): JournalRun | undefined {
  const runs = journal.findAtEveryAddress(id)
  const [first, other] = [...new Set(runs.map(({ address }) => address))]
  if (first === undefined || other === undefined) return runs[0]
  const flagOf = (address: string) =>
    address === LOCAL_ADDRESS ? '--local' : `--base-url ${quoteWord(address)}`
  throw usageError(
    `There is a run ${id} ${placeOf(first)}, and another one ${placeOf(other)}. Nothing was sent.`,
    `Use ${flagOf(first)} or ${flagOf(other)}.`,
  )
}

/** Throws `usage` if the runs are at several services. */
async function inOneSession(ctx: Context, runs: readonly FoundRun[]): Promise<SelectedRuns> {
  const ids = runs.map(({ id }) => id)
  const [first] = runs
  const key = ({ home }: FoundRun) => JSON.stringify(home && [home.address, home.profile])
  const other = runs.find((run) => first !== undefined && key(run) !== key(first))
  if (first !== undefined && other !== undefined) throw await severalServices(ctx, first, other)
  const home = first?.home
  return { ids, ctx: home === undefined ? ctx : (ctx.sessionOf?.(home) ?? ctx) }
}

async function severalServices(ctx: Context, first: FoundRun, other: FoundRun): Promise<RushesError> {
  const here = { address: (await addressOr(ctx)) ?? '', profile: ctx.profileName }
  const { home: one = here } = first
  const { home: another = here } = other
  const place =
    one.address === another.address ? `with the profile ${another.profile}` : placeOf(another.address)
  return usageError(
    `${first.id} was created ${placeOf(one.address)}, and ${other.id} ${place}.`,
    'Use a separate command for each of them.',
  )
}

/**
 * Returns the error for a run that this command cannot reach. It names the run's address or profile, and the flag to
 * use.
 */
export async function livesElsewhere(ctx: Context, id: string, run: RunHome): Promise<RushesError> {
  const home = describeHome(run, await addressOr(ctx))
  const flags = (await flagsFor(ctx, run)).join(' ')
  const instead = ctx.globals.local ? ' instead of --local' : ''
  return usageError(
    `${id} was created ${home}. Nothing was sent.`,
    ctx.sessionOf === undefined
      ? `It needs a server that the user starts with \`rushes mcp ${flags}\`${instead}.`
      : `Use ${flags}${instead}.`,
  )
}

const placeOf = (address: string): string =>
  address === LOCAL_ADDRESS ? 'by the local service' : `at ${address}`

const describeHome = ({ address, profile }: RunHome, here: string | undefined): string =>
  address === here
    ? `with the profile ${profile}`
    : `${placeOf(address)}${here === undefined ? '' : `, not ${placeOf(here)}`}`
