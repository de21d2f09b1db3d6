/** `rushes logout`: removes the stored key of the profile. */
import type { Command } from 'commander'
import type { CommandEnvironment, Context } from '../context/context.js'
import { variable } from '../process/io.js'
import { storedKeyOf, withValue } from '../settings/config-file.js'
import { KEY_VARIABLES } from '../settings/table.js'

export function register(command: Command, { run }: CommandEnvironment, logOut = logoutCommand): void {
  command.action(() => run(command, logOut, { ignoresLocal: true }))
}

export async function logoutCommand(ctx: Context): Promise<number> {
  const stored = storedKeyOf(await ctx.profile())
  if (stored === undefined) {
    ctx.out.note(`The profile ${ctx.profileName} has no stored API key.`)
    return 0
  }
  await ctx.config.update(ctx.profileName, (profile) => withValue(profile, 'apiKey', undefined))
  ctx.out.note(
    `Removed the API key for ${stored.origin} from this machine. It still works at the service: ` +
      `to revoke it, disable it in the account's settings (API keys).`,
  )
  const variables = KEY_VARIABLES.filter((name) => variable(ctx.env, name) !== undefined)
  if (variables.length > 0) ctx.out.note(`Commands still use the key of ${variables[0]}, which is set.`)
  return 0
}
