/** `rushes admin migrate`: from the data folder of one machine to the engines of several. */
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { formatBytes } from '../../protocol/byte-size.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import type { Context } from '../context/context.js'
import { databaseUrlOf } from '../flags/database.js'
import { openStorage } from '../serve/storage.js'
import { plural } from '../terminal/plural.js'

const PROGRESS_EVERY = 1_000

export interface MigrateFlags {
  readonly from?: string
  readonly to?: string
  readonly storage?: string
  readonly allowMissing?: boolean
  readonly undo?: boolean
}

export const addMigrateFlags = (command: Command): Command =>
  command
    .description('Move the data of a service from its folder to PostgreSQL')
    .addOption(new Option('--from <folder>', 'Data folder of the service, which is stopped (required)'))
    .addOption(
      new Option('--to <url>', 'Empty PostgreSQL database, postgres://… (default: RUSHES_DATABASE_URL)'),
    )
    .addOption(new Option('--storage <url>', 'Copy outputs and inputs to this bucket, s3://bucket/prefix'))
    .addOption(new Option('--allow-missing', 'Also move outputs whose file is missing'))
    .addOption(new Option('--undo', 'Use the folder again: remove the mark that its data was moved'))

export async function migrate(
  ctx: Context,
  { from, to: toFlag, storage: storageUrl, allowMissing, undo }: MigrateFlags,
): Promise<number> {
  const { out, interrupts, env } = ctx
  if (undo) return await undoMigration(ctx, from)
  const to = databaseUrlOf(toFlag, env)
  if (from === undefined || to === undefined)
    throw usageError(
      from === undefined ? 'Missing --from.' : 'Missing --to.',
      'Give the data folder with --from, and the database in RUSHES_DATABASE_URL or with --to.',
    )
  const storage = await openStorage(ctx, { ...(storageUrl !== undefined && { storage: storageUrl }) })
  try {
    const { migrateData } = await import('../../service/migrate/index.js')
    const { accounts, entries, runs, credits, outputs, files } = await migrateData({
      dataFolder: from,
      databaseUrl: to,
      storage,
      allowMissing,
      signal: interrupts.first,
      onProgress: (count) => count % PROGRESS_EVERY === 0 && out.note(`${count} files copied`),
    })
    if (out.mode.json) out.json({ accounts, entries, runs, credits, outputs, files: files ?? null })
    else out.line(nameOf(to))
    out.note(
      `${plural(accounts, 'account')}, ${plural(runs, 'run')}, ${plural(outputs, 'output')}, ${plural(credits, 'credit')}: all sums match.`,
    )
    if (files === undefined)
      out.note(`The files stay in ${from}: start the service with --database and --data ${from}.`)
    else
      out.note(
        `${plural(files.copied, 'file')} copied (${formatBytes(files.bytes)}), ${files.present} there already, ${files.missing} missing. Start the service with --database and --storage.`,
      )
    out.note(
      `The database in ${from} is marked as moved: \`serve\` and \`admin\` refuse it. Keep it until the new service works.`,
    )
    return EXIT.ok
  } finally {
    storage?.close?.()
  }
}

async function undoMigration({ out }: Context, from: string | undefined): Promise<number> {
  if (from === undefined) throw usageError('Missing --from.', 'Give the data folder with --from.')
  const { undoMigration: undo } = await import('../../service/migrate/index.js')
  const database = await undo(from)
  out.note(
    `${from} can be used again, as it was when it was moved. Do not use ${database} as well: what changes in one is missing in the other.`,
  )
  return EXIT.ok
}
