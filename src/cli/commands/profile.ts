/** `rushes profile`: lists the profiles of the config file, and chooses the default one. */
import type { Command } from 'commander'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { settingsOf } from '../settings/config-file.js'
import { checkProfile } from '../settings/required-settings.js'
import { isOn, LOCAL_ADDRESS } from '../settings/table.js'
import { printList } from '../terminal/table.js'

export function register(command: Command, { run }: CommandEnvironment): void {
  const list = command.command('list').description('List the profiles; the current one has a *')
  list.action(() => run(list, listCommand, { createsProfile: true, ignoresLocal: true }))
  const use = command
    .command('use')
    .description('Choose the profile of commands without --profile and RUSHES_PROFILE')
    .argument('<name>', 'Name of the profile')
  use.action((name: string) =>
    run(use, (ctx) => useCommand(ctx, name), { createsProfile: true, ignoresLocal: true }),
  )
}

async function listCommand(ctx: Context): Promise<number> {
  const rows = await Promise.all(
    (await ctx.config.profiles()).map(async (name) => {
      const { baseUrl, local } = settingsOf(await ctx.config.read(name), ['baseUrl', 'local'])
      const address = local !== undefined && isOn(local, `profiles.${name}.local`) ? LOCAL_ADDRESS : baseUrl
      return { name, address, isCurrent: name === ctx.profileName }
    }),
  )
  printList(ctx.out, rows, {
    header: ['', 'PROFILE', 'SERVICE'],
    cells: ({ name, address = '', isCurrent }) => [isCurrent ? '*' : '', name, address].map(printable),
    json: ({ name, address = null, isCurrent }) => ({ name, address, current: isCurrent }),
  })
  return 0
}

async function useCommand(ctx: Context, name: string): Promise<number> {
  const { out, profileName, profileOrigin } = ctx
  checkProfile({ name, origin: '--profile' }, await ctx.config.profiles())
  await ctx.config.useProfile(name)
  out.note(
    `Commands now use the profile ${printable(name)}, unless --profile or RUSHES_PROFILE names another.`,
  )
  if (profileOrigin === 'RUSHES_PROFILE' && profileName !== name)
    out.note(
      `RUSHES_PROFILE is set: in this shell, commands still use the profile ${printable(profileName)}.`,
    )
  return 0
}
