/** Where a run lives, by the journal: here, in the local service, or at another address or under another profile. */
import { type RushesError, usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { quoteWord } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { inTurns } from '../process/exit.js'
import { settingsOf } from '../settings/config-file.js'
import { LOCAL_ADDRESS } from '../settings/table.js'

/** The address of this command; undefined when none is set, or when it is invalid. */
export const addressOr = (ctx: Context): Promise<string | undefined> => ctx.address().catch(() => undefined)

type Home = Pick<JournalRun, 'address' | 'profile'>

/** The flags with which a command of this context reaches the run; empty when it does so already. */
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

/** One that was removed meanwhile cannot be asked for. */
const isProfile = async ({ config }: Context, profile: string): Promise<boolean> =>
  profile === 'default' || (await config.profiles()).includes(profile)

/**
 * The context for each id: that of the local service for its runs, else this one, also for an id that the journal does
 * not know, or with an address on the command line. Throws `usage` for a run at another address or under another profile.
 */
export async function contextsOf(ctx: Context, ids: readonly string[]): Promise<readonly Context[]> {
  // An address on the command line is meant, also for a service that has moved.
  if (ctx.globals.baseUrl !== undefined) return ids.map(() => ctx)
  // Without a usable journal nothing is known; who needs it says so.
  const journal = await ctx.journal().catch(() => undefined)
  if (journal === undefined) return ids.map(() => ctx)
  const here = await addressOr(ctx)
  const contexts: Context[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first))
    contexts.push(await contextOf(ctx, journal, id, here))
  return contexts
}

/** The one context of all ids. Throws `usage` when some of them are local and others are not. */
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

/** The error for a run of the journal that this command does not reach: it names where the run is, and the flag to use. */
export async function livesElsewhere(ctx: Context, id: string, run: Home): Promise<RushesError> {
  const home = homeOf(run, await addressOr(ctx))
  return usageError(`${id} was created ${home}. Nothing was sent.`, wayTo(ctx, await flagsFor(ctx, run)))
}

const homeOf = ({ address, profile }: Home, here: string | undefined): string => {
  if (address === here) return `with the profile ${profile}`
  const there = address === LOCAL_ADDRESS ? 'by the local service' : `at ${address}`
  return here === undefined
    ? there
    : `${there}, not ${here === LOCAL_ADDRESS ? 'by the local service' : `at ${here}`}`
}

const wayTo = ({ globals }: Context, flags: readonly string[]): string => {
  return `Use ${flags.join(' ')}${globals.local ? ' instead of --local' : ''}.`
}
