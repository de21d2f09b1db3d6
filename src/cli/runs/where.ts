/**
 * Finds the service of a run in the journal: the current one, the local one, or one at another address or under another
 * profile.
 */
import { type RushesError, usageError } from '../../errors.js'
import type { Journal } from '../../journal/index.js'
import { quoteWord } from '../../protocol/text.js'
import type { Context, RunHome } from '../context/context.js'
import { inTurns } from '../process/exit.js'
import { settingsOf } from '../settings/config-file.js'
import { LOCAL_ADDRESS, variable } from '../settings/table.js'

/** Address of this command. Undefined if none is set, or if it is invalid. */
export const addressOr = (ctx: Context): Promise<string | undefined> => ctx.address().catch(() => undefined)

/** Returns the flags with which a command reaches the run. Empty if this context already reaches it. */
async function flagsFor(ctx: Context, { address, profile }: RunHome): Promise<readonly string[]> {
  if (address === LOCAL_ADDRESS) return ctx.globals.local ? [] : ['--local']
  const isOtherProfile = profile !== ctx.profileName && (await isProfile(ctx, profile))
  if (isOtherProfile && settingsOf(await ctx.config.read(profile), ['baseUrl']).baseUrl === address)
    return ['--profile', quoteWord(profile)]
  const { globals, env } = ctx
  // Another profile changes the address, unless a flag or a variable sets it.
  const isKept =
    !isOtherProfile || globals.baseUrl !== undefined || variable(env, 'RUSHES_BASE_URL') !== undefined
  const isHere = isKept && (await addressOr(ctx)) === address
  return [
    ...(isOtherProfile ? ['--profile', quoteWord(profile)] : []),
    ...(isHere ? [] : ['--base-url', quoteWord(address)]),
  ]
}

/** False for a profile that has been removed: its settings cannot be read. */
const isProfile = async ({ config }: Context, profile: string): Promise<boolean> =>
  profile === 'default' || (await config.profiles()).includes(profile)

/** A run, and the context of its service. */
export interface SelectedRun {
  readonly id: string
  readonly ctx: Context
}

/** Whether no service is configured. Every run is then reached at its own address. */
const hasNoService = async (ctx: Context): Promise<boolean> =>
  (await ctx.findAddress().catch(() => 'not valid')) === undefined

/** Returns the flags for a command that asks the run's service, and creates nothing. */
export const flagsToReach = async (ctx: Context, run: RunHome): Promise<readonly string[]> =>
  (await hasNoService(ctx)) ? [] : flagsFor(ctx, run)

const homeOf = (ctx: Context, run: RunHome): Context | Promise<Context> =>
  run.address === LOCAL_ADDRESS ? ctx.withLocal() : ctx.at(run)

/** Returns the context of each run of `--last` and `--all`: this one, unless no service is configured. */
export async function selectRows(
  ctx: Context,
  runs: readonly (RunHome & { readonly id: string })[],
): Promise<readonly SelectedRun[]> {
  const isHere = !(await hasNoService(ctx))
  return Promise.all(runs.map(async (run) => ({ id: run.id, ctx: isHere ? ctx : await homeOf(ctx, run) })))
}

/**
 * Returns a context for each id: that of its service if it is local or if no service is configured, else this one. Also
 * this one for ids that are not in the journal, or if the command line has an address. Throws `usage` for a run at
 * another address or under another profile.
 */
export async function selectIds(ctx: Context, ids: readonly string[]): Promise<readonly SelectedRun[]> {
  const allHere = () => ids.map((id) => ({ id, ctx }))
  // An address on the command line is used for all ids: the service may have moved.
  if (ctx.globals.baseUrl !== undefined) return allHere()
  // Without a readable journal, no run is known to be elsewhere. Commands that need the journal report its error.
  const journal = await ctx.journal().catch(() => undefined)
  if (journal === undefined) return allHere()
  const here = await addressOr(ctx)
  const selected: SelectedRun[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first))
    selected.push({ id, ctx: await contextOf(ctx, journal, id, here) })
  return selected
}

/** Returns the context of all runs. Throws `usage` if they are at several services. */
export async function contextOfAll(ctx: Context, runs: readonly SelectedRun[]): Promise<Context> {
  const [first = { id: '', ctx }] = runs
  const other = runs.find((each) => each.ctx !== first.ctx)
  if (other === undefined) return first.ctx
  const [one, another] = first.ctx.globals.local ? [first, other] : [other, first]
  throw usageError(
    one.ctx.globals.local
      ? `${one.id} is a run of the local service, and ${another.id} is not.`
      : `${first.id} was created at ${await first.ctx.address()}, and ${other.id} ${describeOther(
          await first.ctx.address(),
          await other.ctx.address(),
          other.ctx.profileName,
        )}.`,
    'Use a separate command for each of them.',
  )
}

const describeOther = (first: string, address: string, profile: string): string =>
  first === address ? `with the profile ${profile}` : `at ${address}`

async function contextOf(
  ctx: Context,
  journal: Journal,
  id: string,
  here: string | undefined,
): Promise<Context> {
  const found = here === undefined ? undefined : journal.find(here, id)
  const run = found ?? journal.findAtEveryAddress(id)[0]
  if (run === undefined) return ctx
  if (await hasNoService(ctx)) return homeOf(ctx, run)
  const flags = await flagsFor(ctx, run)
  if (flags.length === 0) return ctx
  if (run.address === LOCAL_ADDRESS) return ctx.withLocal()
  throw await livesElsewhere(ctx, id, run)
}

/**
 * Returns the error for a run that this command cannot reach. It names the run's address or profile, and the flag to
 * use.
 */
export async function livesElsewhere(ctx: Context, id: string, run: RunHome): Promise<RushesError> {
  const home = describeHome(run, await addressOr(ctx))
  const flags = (await flagsFor(ctx, run)).join(' ')
  return usageError(
    `${id} was created ${home}. Nothing was sent.`,
    `Use ${flags}${ctx.globals.local ? ' instead of --local' : ''}.`,
  )
}

const describeHome = ({ address, profile }: RunHome, here: string | undefined): string => {
  if (address === here) return `with the profile ${profile}`
  const there = address === LOCAL_ADDRESS ? 'by the local service' : `at ${address}`
  return here === undefined
    ? there
    : `${there}, not ${here === LOCAL_ADDRESS ? 'by the local service' : `at ${here}`}`
}
