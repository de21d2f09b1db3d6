/** `rushes admin backup`, `verify` and `migrate`: commands for the whole database. */
import { join } from 'node:path'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { formatBytes } from '../../protocol/units.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import type { Context } from '../context/context.js'
import { databaseUrlOf, openStorage } from '../serve/flags.js'
import { SERVICE_FOLDER } from '../settings/folders.js'
import { plural } from '../terminal/format.js'
import type { AdminCommand, AdminTask } from './admin-command.js'

export const databaseCommands: readonly AdminCommand[] = [
  {
    usage: 'backup <file>',
    about: 'Write a consistent copy of the database, also while the service runs',
    async work({ ctx: { out }, admin }, file = '') {
      const { path, bytes } = await admin.backup(file)
      if (out.mode.json) out.json({ path, bytes })
      else out.line(path)
      out.note(`${path}: ${formatBytes(bytes)}. Copy the files of the service beside it.`)
    },
  },
  {
    usage: 'verify',
    about: 'Recompute every balance, and name differences and runs of unknown outcome',
    work: verify,
  },
]

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
      hint: 'Another program may have changed the data. Compare it with a backup (docs/operations.md).',
    },
  )
}

interface MigrateFlags {
  readonly data?: string
  readonly toDatabase?: string
  readonly toStorage?: string
}

export async function migrate(ctx: Context, { data, toDatabase, toStorage }: MigrateFlags): Promise<number> {
  const { out, interrupts, env, stateFolder } = ctx
  const databaseUrl = databaseUrlOf(toDatabase, env)
  if (databaseUrl === undefined)
    throw usageError('Missing --to-database.', 'Give the URL there, or in RUSHES_DATABASE_URL.')
  const dataFolder = data ?? join(stateFolder, SERVICE_FOLDER)
  const storage = await openStorage(ctx, toStorage)
  try {
    const { migrateData } = await import('../../service/migrate.js')
    const migration = { dataFolder, databaseUrl, storage, signal: interrupts.first }
    const { accounts, entries, runs, credits, files } = await migrateData(migration)
    if (out.mode.json) out.json({ accounts, entries, runs, credits, files: files ?? null })
    else out.line(nameOf(databaseUrl))
    out.note(
      `${plural(accounts, 'account')}, ${plural(runs, 'run')}, ${plural(credits, 'credit')}: all sums match.`,
    )
    out.note(
      files === undefined
        ? `The files stay in ${dataFolder}: start the service with --database and --data ${dataFolder}.`
        : `${plural(files, 'file')} in the bucket. Start the service with --database and --storage.`,
    )
    out.note(
      `The database in ${dataFolder} is now service.db.moved: \`serve\` and \`admin\` refuse it. Keep it until the new service works.`,
    )
    return EXIT.ok
  } finally {
    storage?.close?.()
  }
}
