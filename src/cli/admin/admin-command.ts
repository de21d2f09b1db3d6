/**
 * Shared by the commands of `rushes admin`: opening the data of a service, and the cells and JSON values of their
 * lists.
 */
import { Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import type { Administration, ServiceData } from '../../service/admin.js'
import type { Context } from '../context/context.js'
import { wholeNumber } from '../flags/values.js'
import { databaseUrlOf, dataFolderOf } from '../serve/flags.js'

/** The flags of all admin commands. Each command has a subset. */
export interface AdminFlags {
  readonly data?: string
  readonly database?: string
  readonly account?: string
  readonly allowIp?: readonly string[]
  readonly balance?: string
  readonly expires?: string
  readonly limit?: string
  readonly name?: string
  readonly now?: boolean
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
  /** Data folder of the service. Undefined with a database server. */
  readonly dataFolder: string | undefined
}

/** A subcommand of `rushes admin`. */
export interface AdminCommand {
  /** Usage for commander: the name, then the arguments. */
  readonly usage: string
  readonly about: string
  readonly options?: () => readonly Option[]
  /** Whether the command may create the data folder. */
  readonly make?: boolean
  work(task: AdminTask, ...words: string[]): Promise<void>
}

/**
 * The data of the service. A flag overrides the variable, so `--data` selects a folder even if RUSHES_DATABASE_URL is
 * set.
 */
function serviceOf(ctx: Context, { data, database }: AdminFlags): ServiceData {
  if (data !== undefined && database !== undefined)
    throw usageError('--data and --database cannot be used together.', 'Select one service.')
  const databaseUrl = data === undefined ? databaseUrlOf(database, ctx.env) : undefined
  return { dataFolder: dataFolderOf(data, ctx), databaseUrl }
}

export async function perform(
  { make = false, work }: AdminCommand,
  ctx: Context,
  flags: AdminFlags,
  words: readonly string[],
): Promise<number> {
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError(
      '`rushes admin` cannot be used with --local or --base-url: it works on the data of a service.',
      'Select the data with --data or --database.',
    )
  const { openAdministration } = await import('../../service/admin.js')
  const service = serviceOf(ctx, flags)
  const dataFolder = service.databaseUrl === undefined ? service.dataFolder : undefined
  const admin = await openAdministration({ ...service, clock: ctx.clock, make })
  try {
    await work({ ctx, admin, flags, dataFolder }, ...words)
    return EXIT.ok
  } catch (error) {
    throw admin.explain(error) ?? error
  } finally {
    await admin.close()
  }
}

export const limitOption = () =>
  new Option('--limit <n>', 'Show the newest N entries; 0 for all').default(DEFAULTS.listLimit)

/** Undefined: no limit. */
export const limitIn = ({ limit = '' }: AdminFlags): number | undefined =>
  wholeNumber(limit, '--limit', 0, 1_000_000_000) || undefined

/** Text of an empty cell. */
export const NONE = '-'
export const isoTime = (ms: number): string => new Date(ms).toISOString()
