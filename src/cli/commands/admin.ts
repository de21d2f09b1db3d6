/**
 * `rushes admin`: manages accounts, keys, credits and backups of a local service, whether it is running or not. It
 * opens the data folder and does not use the port, so write access to that folder is the permission.
 */
import type { Command } from 'commander'
import { accountCommands, creditsCommands } from '../admin/accounts.js'
import { type AdminCommand, type AdminFlags, DATA_FLAG, perform } from '../admin/admin-command.js'
import { databaseCommands, migrate } from '../admin/database.js'
import { keyCommands } from '../admin/keys.js'
import { runCommands } from '../admin/runs.js'
import { userCommands } from '../admin/users.js'
import type { CommandEnvironment } from '../context/context.js'
import { databaseOption } from '../serve/flags.js'

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
  for (const row of databaseCommands) add(command, row)
  const migration = command
    .command('migrate')
    .description('Move the data of a stopped service from its folder to PostgreSQL')
    .option(...DATA_FLAG)
    .option('--to-database <url>', 'Empty PostgreSQL database, postgres://… (default: RUSHES_DATABASE_URL)')
    .option('--to-storage <url>', 'Copy outputs and inputs to this bucket, s3://bucket/prefix')
  act(migration, migrate, { ignoresLocal: true })
}
