/** The shape of the commands of `rushes admin`, which all work on an open data folder. */
import { join } from 'node:path'
import type { Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Administration, AdministrationOptions } from '../../service/administration.js'
import type { Context } from '../context/context.js'
import { databaseUrlOf } from '../flags/database.js'
import { SERVICE_FOLDER } from '../settings/folders.js'

/** The flags of all commands; each has some of them. */
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
}

export interface Work {
  readonly ctx: Context
  readonly admin: Administration
  readonly flags: AdminFlags
}

/** One command below `rushes admin`. */
export interface AdminCommand {
  /** For commander: the name, then the arguments. */
  readonly usage: string
  readonly about: string
  readonly options?: () => readonly Option[]
  /** Whether it may create the data folder. */
  readonly make?: boolean
  work(work: Work, ...words: string[]): Promise<void>
}

/** A flag wins over the variable, so that `--data` selects a folder wherever RUSHES_DATABASE_URL is set. */
function placeOf(
  { env, stateFolder }: Context,
  { data, database }: AdminFlags,
): Pick<AdministrationOptions, 'dataFolder' | 'databaseUrl'> {
  if (data !== undefined && database !== undefined)
    throw usageError('--data and --database cannot be used together.', 'Select one service.')
  const databaseUrl = data === undefined ? databaseUrlOf(database, env) : undefined
  return { dataFolder: data ?? join(stateFolder, SERVICE_FOLDER), databaseUrl }
}

export async function perform(
  { make = false, work }: AdminCommand,
  { ctx, flags }: Pick<Work, 'ctx' | 'flags'>,
  words: readonly string[],
): Promise<number> {
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError(
      '`rushes admin` cannot be used with --local or --base-url: it works on the data of a service.',
      'Select the data with --data or --database.',
    )
  const { openAdministration } = await import('../../service/administration.js')
  const admin = await openAdministration({ ...placeOf(ctx, flags), clock: ctx.clock, make })
  try {
    await work({ ctx, admin, flags }, ...words)
    return EXIT.ok
  } finally {
    await admin.close()
  }
}
