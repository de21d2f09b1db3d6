/**
 * `rushes admin`: manages accounts, keys, credits and backups of a local service, whether it is running or not. It
 * opens the data folder and does not use the port, so write access to that folder is the permission.
 */
import { type Command, Option } from 'commander'
import { accountCommands, creditsCommands } from '../admin/accounts.js'
import { type AdminCommand, type AdminFlags, perform } from '../admin/admin-command.js'
import {
  addMigrateFlags,
  backupCommand,
  type MigrateFlags,
  migrate,
  verifyCommand,
} from '../admin/database.js'
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

export function register(command: Command, { run }: CommandEnvironment, work = perform): void {
  const add = (parent: Command, row: AdminCommand) => {
    const child = parent.command(row.usage).description(row.about)
    for (const option of row.options?.() ?? []) child.addOption(option)
    child
      .addOption(new Option('--data <folder>', 'Data folder of the service (default: in the state folder)'))
      .addOption(databaseOption())
      .action((...args: unknown[]) => {
        const words = args.filter((each) => typeof each === 'string')
        return run(child, (ctx) => work(row, ctx, child.opts<AdminFlags>(), words), {
          ignoresLocal: true,
        })
      })
  }
  for (const [name, about, rows] of GROUPS) {
    const group = command.command(name).description(about)
    for (const row of rows) add(group, row)
  }
  add(command, backupCommand)
  add(command, verifyCommand)
  const migration = addMigrateFlags(command.command('migrate'))
  migration.action((flags: MigrateFlags) =>
    run(migration, (ctx) => migrate(ctx, flags), { ignoresLocal: true }),
  )
}
