/** The shape of the commands of `rushes admin`, which all work on an open data folder. */
import { join } from 'node:path'
import type { Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Administration } from '../../service/administration.js'
import type { Context } from '../context/context.js'
import { SERVICE_FOLDER } from '../settings/folders.js'

/** The flags of all commands; each has some of them. */
export interface AdminFlags {
  readonly data?: string
  readonly account?: string
  readonly allowIp?: readonly string[]
  readonly balance?: string
  readonly expires?: string
  readonly limit?: string
  readonly name?: string
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

export async function perform(
  { make = false, work }: AdminCommand,
  { ctx, flags }: Pick<Work, 'ctx' | 'flags'>,
  words: readonly string[],
): Promise<number> {
  if (ctx.globals.local || ctx.globals.baseUrl !== undefined)
    throw usageError(
      '`rushes admin` cannot be used with --local or --base-url: it works on a data folder.',
      'Select the folder with --data.',
    )
  const { openAdministration } = await import('../../service/administration.js')
  const dataFolder = flags.data ?? join(ctx.stateFolder, SERVICE_FOLDER)
  const admin = await openAdministration({ dataFolder, clock: ctx.clock, make })
  try {
    await work({ ctx, admin, flags }, ...words)
    return EXIT.ok
  } finally {
    await admin.close()
  }
}
