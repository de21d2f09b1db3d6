/** `rushes config`: reads and changes the settings of a profile, except the API key. */
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment, CommandNeeds, Context } from '../context/context.js'
import { readJsonArgument } from '../flags/values.js'
import { priceProblems } from '../models/prices.js'
import { type RawProfile, settingOf, withValue } from '../settings/config-file.js'
import { modelsByKind, serviceUrlOf } from '../settings/settings.js'
import { CONFIG_KEYS, SETTINGS, settingOfKey } from '../settings/table.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  const child = (
    usage: string,
    about: string,
    work: (ctx: Context, flags: object, ...words: string[]) => Promise<number>,
    needs?: CommandNeeds,
  ) => act(command.command(usage).description(about), work, { ...needs, ignoresLocal: true })
  act(command, list, { ignoresLocal: true })
  child('list', 'List the settings of the profile', list)
  child('get <key>', 'Print a setting', get)
  child('set <key> <value>', 'Change a setting', set, { createsProfile: true })
  child('unset <key>', 'Remove a setting', unset)
  child('path', 'Print the path of the config file', path)
}

const PRICES = SETTINGS.prices.key

/** Prices are an object, and not its text. */
const jsonOf = (profile: RawProfile, key: string): unknown =>
  key === PRICES && isObject(profile[key]) ? profile[key] : settingOf(profile, key)

async function list(ctx: Context): Promise<number> {
  const { out, profileName } = ctx
  const profile = ctx.profile()
  const keys = CONFIG_KEYS.filter((key) => settingOf(profile, key) !== undefined)
  if (out.mode.json) out.json(Object.fromEntries(keys.map((key) => [key, jsonOf(profile, key)])))
  else for (const key of keys) out.line(printable(`${key}=${settingOf(profile, key)}`))
  if (keys.length === 0) out.note(`The profile ${profileName} has no settings.`)
  return EXIT.ok
}

async function get(ctx: Context, _flags: object, key = ''): Promise<number> {
  const { out } = ctx
  settingOfKey(key)
  const profile = ctx.profile()
  const value = settingOf(profile, key)
  if (value === undefined)
    throw usageError(
      `${key} is not set in the profile ${ctx.profileName}.`,
      `Set it with \`rushes config set ${key} <value>\`.`,
    )
  if (out.mode.json) out.json(jsonOf(profile, key))
  else out.line(printable(value))
  return EXIT.ok
}

async function set(ctx: Context, _flags: object, key = '', value = ''): Promise<number> {
  const { check, stored } = settingOfKey(key)
  if (value.trim() === '')
    throw usageError(
      `${key}: the value is empty.`,
      `To remove the setting, run \`rushes config unset ${key}\`.`,
    )
  check?.(value, key)
  let kept: unknown = stored?.(value) ?? value
  if (key === SETTINGS.baseUrl.key) kept = serviceUrlOf(value, ctx.env)
  else if (key === PRICES) kept = await readPrices(ctx, value)
  await ctx.config.update(ctx.profileName, (profile) => withValue(profile, key, kept))
  return EXIT.ok
}

/** Rejects with `usage` and all problems. */
async function readPrices(ctx: Context, text: string): Promise<Readonly<Record<string, unknown>>> {
  const hint = `Example: \`rushes config set ${PRICES} '{"acme/still-1": {"run": 0.04}}'\`. Or use @${PRICES}.json.`
  const prices = await readJsonArgument(ctx, text, { name: PRICES, hint })
  const problems = priceProblems(prices, await ctx.models(), await modelsByKind(ctx))
  if (problems.length === 0) return prices
  throw usageError(`${problems.join('; ')}. Nothing was changed.`, hint)
}

async function unset(ctx: Context, _flags: object, key = ''): Promise<number> {
  settingOfKey(key)
  await ctx.config.update(ctx.profileName, (profile) => withValue(profile, key, undefined))
  return EXIT.ok
}

async function path({ config, out }: Context): Promise<number> {
  out.answer({ path: config.path }, config.path)
  return EXIT.ok
}
