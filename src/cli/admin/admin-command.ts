/** Shared by the commands of `rushes admin`: their flags, and opening the data of a service. */
import type { Command } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import type { Administration } from '../../service/admin.js'
import type { Context } from '../context/context.js'
import { databaseUrlOf, dataFolderOf } from '../flags/serve.js'

/** The flags of all admin commands. Each command has a subset. */
export interface AdminFlags {
  readonly data?: string
  readonly database?: string
  readonly account?: string
  readonly allowIp?: readonly string[]
  readonly balance?: string
  readonly expires?: string
  readonly name?: string
  readonly publicUrl?: string
  readonly quota?: string
  readonly rate?: string
  readonly spendLimit?: string
  readonly status?: LocalStatus
}

/** Arguments of an admin command that is running. */
export interface AdminTask {
  readonly ctx: Context
  readonly admin: Administration
  readonly flags: AdminFlags
  /** Adds the flags that select this data to the commands of a text, so that a copied one acts on the same data. */
  withFlags(text: string): string
}

/** A subcommand of `rushes admin`. */
export interface AdminCommand {
  /** Usage for commander: the name, then the arguments. */
  readonly usage: string
  readonly about: string
  options?(command: Command): unknown
  /** Whether the command may create the data folder. */
  readonly make?: boolean
  work(task: AdminTask, ...words: string[]): Promise<void>
}

export const DATA_FLAG = [
  '--data <folder>',
  'Data folder of the service (default: RUSHES_DATA, else in the state folder)',
] as const

export async function perform(
  { make = false, work }: AdminCommand,
  ctx: Context,
  flags: AdminFlags,
  words: readonly string[],
): Promise<number> {
  const { data, database } = flags
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError(
      '`rushes admin` cannot be used with --local or --base-url: it works on the data of a service.',
      'Select the data with --data or --database.',
    )
  if (data !== undefined && database !== undefined)
    throw usageError('--data and --database cannot be used together.', 'Select one service.')
  // --data selects a folder, even if RUSHES_DATABASE_URL is set.
  const databaseUrl = data === undefined ? databaseUrlOf(database, ctx.env) : undefined
  const { openAdministration } = await import('../../service/admin.js')
  const admin = await openAdministration({
    dataFolder: dataFolderOf(data, ctx),
    databaseUrl,
    clock: ctx.clock,
    make,
  })
  const withFlags = (text: string) =>
    text.replaceAll(/`rushes admin [^`]*/g, (command) => command + flagsFor(flags))
  try {
    await work({ ctx, admin, flags, withFlags }, ...words)
    return EXIT.ok
  } catch (thrown) {
    const error = admin.explain(thrown) ?? thrown
    if (!(error instanceof RushesError) || error.hint === undefined) throw error
    throw error.with({ hint: withFlags(error.hint) })
  } finally {
    await admin.close()
  }
}

/** The flags of the line that select the data. A URL with a password is not repeated. */
function flagsFor({ data, database }: AdminFlags): string {
  if (data !== undefined) return ` --data ${quoteWord(data)}`
  if (database === undefined) return ''
  return ` --database ${/:[^/]*@|password/.test(database) ? '<url>' : quoteWord(database)}`
}
