/**
 * `rushes admin`: accounts, keys, credits and backups of a local service, beside a running one or without. It works on the data
 * folder and not through the port, so whoever may write there is the administrator.
 */
import { type Command, Option } from 'commander'
import { accountCommands } from '../admin/account-commands.js'
import { type AdminCommand, type AdminFlags, perform } from '../admin/admin-command.js'
import { backupCommand } from '../admin/backup-command.js'
import { creditsCommands } from '../admin/credit-commands.js'
import { keyCommands } from '../admin/key-commands.js'
import { addMigrateFlags, type MigrateFlags, migrate } from '../admin/migrate-command.js'
import { userCommands } from '../admin/user-commands.js'
import { verifyCommand } from '../admin/verify-command.js'
import { databaseOption } from '../flags/database.js'
import type { CommandEnvironment } from './command-environment.js'

const GROUPS = [
  ['account', 'Manage accounts', accountCommands],
  ['key', 'Manage API keys', keyCommands],
  ['credits', 'Manage balances', creditsCommands],
  ['user', 'Manage the users of the console', userCommands],
] as const

export function register(command: Command, { run }: CommandEnvironment, work = perform): void {
  const add = (parent: Command, row: AdminCommand) => {
    const child = parent.command(row.usage).description(row.about)
    for (const option of row.options?.() ?? []) child.addOption(option)
    child
      .addOption(new Option('--data <folder>', 'Data folder of the service (default: in the state folder)'))
      .addOption(databaseOption())
      .action((...given: unknown[]) => {
        const words = given.filter((each) => typeof each === 'string')
        return run(child, (ctx) => work(row, { ctx, flags: child.opts<AdminFlags>() }, words), {
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
