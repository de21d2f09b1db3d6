/**
 * Finds the service of a run in the journal: the current one, the local one, or one at another address or under another
 * profile.
 */
import { type RushesError, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { quoteWord } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { inTurns } from '../process/exit.js'
import { settingsOf } from '../settings/config-file.js'
import { LOCAL_ADDRESS } from '../settings/table.js'

/** Address of this command. Undefined if none is set, or if it is invalid. */
export const addressOr = (ctx: Context): Promise<string | undefined> => ctx.address().catch(() => undefined)

type Home = Pick<JournalRun, 'address' | 'profile'>

/** Returns the flags with which a command reaches the run. Empty if this context already reaches it. */
export async function flagsFor(ctx: Context, { address, profile }: Home): Promise<readonly string[]> {
  if (address === LOCAL_ADDRESS) return ctx.globals.local ? [] : ['--local']
  const isOtherProfile = profile !== ctx.profileName && (await isProfile(ctx, profile))
  if (isOtherProfile && settingsOf(await ctx.config.read(profile), ['baseUrl']).baseUrl === address)
    return ['--profile', quoteWord(profile)]
  return [
    ...(isOtherProfile ? ['--profile', quoteWord(profile)] : []),
    ...((await addressOr(ctx)) === address ? [] : ['--base-url', quoteWord(address)]),
  ]
}

/** False for a profile that has been removed: its settings cannot be read. */
const isProfile = async ({ config }: Context, profile: string): Promise<boolean> =>
  profile === 'default' || (await config.profiles()).includes(profile)

/**
 * Returns a context for each id: the local service's for its runs, else this one. Also this one for ids that are not in
 * the journal, or if the command line has an address. Throws `usage` for a run at another address or under another
 * profile.
 */
export async function contextsOf(ctx: Context, ids: readonly string[]): Promise<readonly Context[]> {
  // An address on the command line is used for all ids: the service may have moved.
  if (ctx.globals.baseUrl !== undefined) return ids.map(() => ctx)
  // Without a readable journal, no run is known to be elsewhere. Commands that need the journal report its error.
  const journal = await ctx.journal().catch(() => undefined)
  if (journal === undefined) return ids.map(() => ctx)
  const here = await addressOr(ctx)
  const contexts: Context[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first))
    contexts.push(await contextOf(ctx, journal, id, here))
  return contexts
}

/** Returns the context of all ids. Throws `usage` if some are local and others are not. */
export async function contextOfAll(ctx: Context, ids: readonly string[]): Promise<Context> {
  const contexts = await contextsOf(ctx, ids)
  const [first = ctx] = contexts
  const other = contexts.findIndex((each) => each !== first)
  if (other === -1) return first
  const [local, remote] = first.globals.local ? [ids[0], ids[other]] : [ids[other], ids[0]]
  throw usageError(
    `${local} is a run of the local service, and ${remote} is not.`,
    'Use a separate command for each of them.',
  )
}

async function contextOf(
  ctx: Context,
  journal: Journal,
  id: string,
  here: string | undefined,
): Promise<Context> {
  const found = here === undefined ? undefined : journal.find(here, id)
  const run = found ?? journal.findAtEveryAddress(id)[0]
  if (run === undefined) return ctx
  const flags = await flagsFor(ctx, run)
  if (flags.length === 0) return ctx
  if (run.address === LOCAL_ADDRESS) return ctx.withLocal()
  throw await livesElsewhere(ctx, id, run)
}

/**
 * Returns the error for a run that this command cannot reach. It names the run's address or profile, and the flag to
 * use.
 */
export async function livesElsewhere(ctx: Context, id: string, run: Home): Promise<RushesError> {
  const home = describeHome(run, await addressOr(ctx))
  return usageError(`${id} was created ${home}. Nothing was sent.`, flagsHint(ctx, await flagsFor(ctx, run)))
}

const describeHome = ({ address, profile }: Home, here: string | undefined): string => {
  if (address === here) return `with the profile ${profile}`
  const there = address === LOCAL_ADDRESS ? 'by the local service' : `at ${address}`
  return here === undefined
    ? there
    : `${there}, not ${here === LOCAL_ADDRESS ? 'by the local service' : `at ${here}`}`
}

const flagsHint = ({ globals }: Context, flags: readonly string[]): string => {
  return `Use ${flags.join(' ')}${globals.local ? ' instead of --local' : ''}.`
}
