/** `rushes admin backup`, `verify` and `migrate`: commands for the whole database. */
import { type Command, Option } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import type { Context } from '../context/context.js'
import { databaseUrlOf, openStorage } from '../serve/flags.js'
import { plural } from '../terminal/format.js'
import type { AdminCommand, AdminTask } from './admin-command.js'

export const backupCommand: AdminCommand = {
  usage: 'backup <file>',
  about: 'Write a consistent copy of the database, also while the service runs',
  work: backUp,
}

async function backUp({ ctx: { out, interrupts }, admin }: AdminTask, file = ''): Promise<void> {
  const { path, bytes, accounts, entries, runs, credits, problems } = await admin.backup(
    file,
    interrupts.first,
  )
  if (out.mode.json) out.json({ path, bytes, accounts, entries, runs, credits, problems })
  else out.line(path)
  if (problems.length > 0)
    out.warn(
      `The copy is complete, but ${plural(problems.length, 'balance does', 'balances do')} not match the ledger. ` +
        `See \`rushes admin verify\`.`,
    )
  out.note(
    `${printable(path)}: ${plural(runs, 'run')}, ${plural(accounts, 'account')}, ${formatBytes(bytes)}, checked.`,
  )
}

export const verifyCommand: AdminCommand = {
  usage: 'verify',
  about: 'Check the database, recompute every balance and report differences',
  work: verify,
}

async function verify({ ctx: { out }, admin }: AdminTask): Promise<void> {
  const { accounts, entries, runs, credits, problems, unknown } = await admin.verify()
  if (out.mode.json)
    out.json({
      ok: problems.length === 0,
      accounts,
      entries,
      runs,
      credits,
      problems,
      outcome_unknown: unknown,
    })
  else if (problems.length > 0) for (const problem of problems) out.line(problem)
  else out.line('ok')
  for (const id of unknown)
    out.warn(
      `${id}: the provider may have accepted this run, and its credits are charged. Look for it in the provider's list, ` +
        `then run \`rushes admin run adopt ${id} <upstream id>\` or \`rushes admin run refund ${id}\`.`,
    )
  const totals = [
    plural(accounts, 'account'),
    plural(entries, 'entry', 'entries'),
    plural(runs, 'run'),
    plural(credits, 'credit'),
  ].join(', ')
  if (problems.length === 0) return out.note(`All balances are correct: ${totals}.`)
  throw new RushesError(
    'service_error',
    `${plural(problems.length, 'problem')} found in the database (${totals}).`,
    {
      hint:
        'Copy the data folder first: another program or a faulty disk may have changed it. ' +
        'Then compare it with a backup (docs/operations.md).',
    },
  )
}

const PROGRESS_EVERY = 1_000

/** Flags of `rushes admin migrate`. */
export interface MigrateFlags {
  readonly from?: string
  readonly to?: string
  readonly storage?: string
  readonly allowMissing?: boolean
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

export async function migrate(
  ctx: Context,
  { from, to: toFlag, storage: storageUrl, allowMissing }: MigrateFlags,
): Promise<number> {
  const { out, interrupts, env } = ctx
  const to = databaseUrlOf(toFlag, env)
  if (from === undefined || to === undefined)
    throw usageError(
      from === undefined ? 'Missing --from.' : 'Missing --to.',
      'Give the data folder with --from, and the database in RUSHES_DATABASE_URL or with --to.',
    )
  const storage = await openStorage(ctx, { ...(storageUrl !== undefined && { storage: storageUrl }) })
  try {
    const { migrateData } = await import('../../service/migrate/index.js')
    const { accounts, entries, runs, credits, outputs, files, damaged } = await migrateData({
      dataFolder: from,
      databaseUrl: to,
      storage,
      allowMissing,
      signal: interrupts.first,
      onProgress: (count) => count % PROGRESS_EVERY === 0 && out.note(`${count} files copied`),
    })
    if (out.mode.json) out.json({ accounts, entries, runs, credits, outputs, files: files ?? null, damaged })
    else out.line(nameOf(to))
    out.note(
      `${plural(accounts, 'account')}, ${plural(runs, 'run')}, ${plural(outputs, 'output')}, ` +
        `${plural(credits, 'credit')}: all sums match.`,
    )
    if (files === undefined)
      out.note(`The files stay in ${from}: start the service with --database and --data ${from}.`)
    else
      out.note(
        `${plural(files.copied, 'file')} copied (${formatBytes(files.bytes)}), ${files.present} there already, ` +
          `${files.missing} missing. Start the service with --database and --storage.`,
      )
    out.note(
      `The database in ${from} is now service.db.moved: \`serve\` and \`admin\` refuse it. Keep it until the new service works.`,
    )
    for (const { id, fields } of damaged)
      out.warn(`${printable(id)}: its stored ${fields.join(' and ')} is damaged, and was moved as it is.`)
    if (damaged.length === 0) return EXIT.ok
    throw new RushesError(
      'service_error',
      `The data was moved, and the stored data of ${plural(damaged.length, 'run')} is damaged.`,
      {
        hint:
          'A run whose input is damaged fails and is refunded when a worker takes it. ' +
          'Compare the runs with a backup (docs/operations.md).',
      },
    )
  } finally {
    storage?.close?.()
  }
}
