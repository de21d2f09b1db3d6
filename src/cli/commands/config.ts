/** `rushes config`: reads and changes the settings of a profile, except the API key. */
import type { Command } from 'commander'
import { usageError } from '../../errors.js'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment, CommandNeeds, Context } from '../context/context.js'
import { settingsOf, withValue } from '../settings/config-file.js'
import { addressHint, CONFIG_KEYS, maskSettings, settingOfKey } from '../settings/table.js'

export function register(command: Command, { run }: CommandEnvironment): void {
  const child = (
    usage: string,
    about: string,
    work: (ctx: Context, ...words: string[]) => Promise<number>,
    needs?: CommandNeeds,
  ) => {
    const sub = command.command(usage).description(about)
    sub.action((...args: unknown[]) =>
      run(sub, (ctx) => work(ctx, ...args.filter((each) => typeof each === 'string')), {
        ...needs,
        ignoresLocal: true,
      }),
    )
  }
  child('list', 'List the settings of the profile', list)
  child('get <key>', 'Print a setting', get)
  child('set <key> <value>', 'Change a setting', set, { createsProfile: true })
  child('unset <key>', 'Remove a setting', unset)
  child('path', 'Print the path of the config file', path)
}

async function list(ctx: Context): Promise<number> {
  const settings = maskSettings(settingsOf(await ctx.profile(), CONFIG_KEYS))
  if (ctx.out.mode.json) ctx.out.json(settings)
  else for (const [key, value] of Object.entries(settings)) ctx.out.line(`${key}=${printable(value)}`)
  return 0
}

async function get(ctx: Context, key = ''): Promise<number> {
  settingOfKey(key)
  const value = maskSettings(settingsOf(await ctx.profile(), [key]))[key]
  if (value === undefined)
    throw usageError(
      `${key} is not set in the profile ${ctx.profileName}.`,
      `Set it with \`rushes config set ${key} <value>\`.`,
    )
  if (ctx.out.mode.json) ctx.out.json(value)
  else ctx.out.line(printable(value))
  return 0
}

async function set(ctx: Context, key = '', value = ''): Promise<number> {
  const setting = settingOfKey(key)
  if (value.trim() === '')
    throw usageError(
      `${key}: the value is empty.`,
      `To remove the setting, run \`rushes config unset ${key}\`.`,
    )
  setting.check?.(value, key)
  if (key === 'baseUrl') {
    const { parseBaseUrl } = await import('../../client/service-access.js')
    const hint = addressHint(parseBaseUrl(value, { allowHttp: ctx.env.RUSHES_ALLOW_HTTP === '1' }))
    if (hint !== undefined) ctx.out.warn(hint)
  }
  await ctx.config.update(ctx.profileName, (profile) =>
    withValue(profile, key, setting.stored?.(value) ?? value),
  )
  return 0
}

async function unset(ctx: Context, key = ''): Promise<number> {
  settingOfKey(key)
  await ctx.config.update(ctx.profileName, (profile) => withValue(profile, key, undefined))
  return 0
}

async function path({ config, out }: Context): Promise<number> {
  if (out.mode.json) out.json({ path: config.path })
  else out.line(config.path)
  return 0
}
