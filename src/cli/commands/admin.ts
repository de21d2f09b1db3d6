/**
 * `rushes admin`: manages accounts, keys, credits and backups of a local service, whether it is running or not. It
 * opens the data folder and does not use the port, so write access to that folder is the permission.
 */
import type { Command } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { formatBytes } from '../../protocol/units.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import { accountCommands, creditsCommands, userCommands } from '../admin/accounts.js'
import {
  type AdminCommand,
  type AdminFlags,
  type AdminTask,
  DATA_FLAG,
  perform,
} from '../admin/admin-command.js'
import { keyCommands } from '../admin/keys.js'
import { runCommands } from '../admin/runs.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { databaseOption, databaseUrlOf, dataFolderOf, openStorage } from '../flags/serve.js'
import { plural } from '../terminal/format.js'

const GROUPS = [
  ['account', 'Manage accounts', accountCommands],
  ['key', 'Manage API keys', keyCommands],
  ['credits', 'Manage balances', creditsCommands],
  ['user', 'Manage the users of the console', userCommands],
  ['run', 'Cancel runs, and decide on runs whose outcome is unknown', runCommands],
] as const

export function register(command: Command, { act }: CommandEnvironment): void {
  const add = (parent: Command, row: AdminCommand) => {
    const child = parent.command(row.usage).description(row.about)
    row.options?.(child)
    child.option(...DATA_FLAG).addOption(databaseOption())
    act(child, (ctx, flags: AdminFlags, ...words: string[]) => perform(row, ctx, flags, words), {
      ignoresLocal: true,
    })
  }
  for (const [name, about, rows] of GROUPS) {
    const group = command.command(name).description(about)
    for (const row of rows) add(group, row)
  }
  for (const row of DATABASE_COMMANDS) add(command, row)
  const migration = command
    .command('migrate')
    .description('Move the data of a stopped service from its folder to PostgreSQL')
    .option(...DATA_FLAG)
    .option('--to-database <url>', 'Empty PostgreSQL database, postgres://… (default: RUSHES_DATABASE_URL)')
    .option('--to-storage <url>', 'Copy outputs and inputs to this bucket, s3://bucket/prefix')
  act(migration, migrate, { ignoresLocal: true })
}

/** For the whole database. */
const DATABASE_COMMANDS: readonly AdminCommand[] = [
  {
    usage: 'backup <file>',
    about: 'Write a consistent copy of the database, also while the service runs',
    async work({ ctx: { out }, admin }, file = '') {
      const { path, bytes } = await admin.backup(file)
      out.answer({ path, bytes }, path)
      out.note(`${path}: ${formatBytes(bytes)}. Copy the files of the service beside it.`)
    },
  },
  {
    usage: 'verify',
    about: 'Recompute every balance, and name differences and runs of unknown outcome',
    work: verify,
  },
]

async function verify({ ctx: { out }, admin, withFlags }: AdminTask): Promise<void> {
  const { accounts, entries, runs, credits, problems, unknown } = await admin.verify()
  const ok = problems.length === 0
  out.answer(
    { ok, accounts, entries, runs, credits, problems, outcome_unknown: unknown },
    ok ? 'ok' : problems.join('\n'),
  )
  for (const id of unknown)
    out.warn(
      withFlags(
        `${id}: the provider may have accepted this run, and its credits are charged. Look for it in the provider's list, ` +
          `then run \`rushes admin run adopt ${id} <upstream id>\` or \`rushes admin run refund ${id}\`.`,
      ),
    )
  const totals = [
    plural(accounts, 'account'),
    plural(entries, 'entry', 'entries'),
    plural(runs, 'run'),
    plural(credits, 'credit'),
  ].join(', ')
  if (ok) return out.note(`All balances are correct: ${totals}.`)
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

async function migrate(ctx: Context, { data, toDatabase, toStorage }: MigrateFlags): Promise<number> {
  const { out, interrupts, env } = ctx
  const databaseUrl = databaseUrlOf(toDatabase, env)
  if (databaseUrl === undefined)
    throw usageError('Missing --to-database.', 'Give the URL there, or in RUSHES_DATABASE_URL.')
  const dataFolder = dataFolderOf(data, ctx)
  const storage = await openStorage(ctx, toStorage)
  try {
    const { migrateData } = await import('../../service/migrate.js')
    const migration = { dataFolder, databaseUrl, storage, signal: interrupts.first }
    const { accounts, entries, runs, credits, files } = await migrateData(migration)
    out.answer({ accounts, entries, runs, credits, files: files ?? null }, nameOf(databaseUrl))
    out.note(
      `${plural(accounts, 'account')}, ${plural(runs, 'run')}, ${plural(credits, 'credit')}: all sums match.`,
    )
    out.note(
      files === undefined
        ? `The files stay in ${dataFolder}: start the service with --database and --data ${dataFolder}.`
        : `${plural(files, 'file')} in the bucket. Start the service with --database and --storage.`,
    )
    out.note(`The database in ${dataFolder} is now service.db.moved. Keep it until the new service works.`)
    return EXIT.ok
  } finally {
    storage?.close?.()
  }
}
