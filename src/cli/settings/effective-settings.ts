/** The settings that apply to a command, and what sets each: for `config list --show-origin` and `doctor`. */
import type { Context } from '../context/context.js'
import { settingsOf, storedKeyOf } from './config-file.js'
import {
  CONFIG_KEYS,
  findLocal,
  KEY_VARIABLES,
  SETTINGS,
  type SettingName,
  type SettingRow,
  type SettingValue,
  uncheckedSetting,
  variable,
} from './table.js'

export interface EffectiveSetting {
  readonly key: string
  /** Without secrets. */
  readonly value: string
  /** A flag, the name of a variable, `profile <name>`, `config file` or `default`. */
  readonly origin: string
}

/** Returns the profile, the settings that have a value, and the origin of the API key. Reads no key. */
export async function effectiveSettings(ctx: Context): Promise<readonly EffectiveSetting[]> {
  const { env, globals, profileName, profileOrigin } = ctx
  const profile = await ctx.profile()
  const file = settingsOf(profile, CONFIG_KEYS)
  const rows: EffectiveSetting[] = [{ key: 'profile', value: profileName, origin: profileOrigin }]
  for (const [name, row] of Object.entries(SETTINGS) as [SettingName, SettingRow][]) {
    const found =
      name === 'local'
        ? await localOf(ctx, file)
        : uncheckedSetting(name, { flag: name === 'baseUrl' ? globals.baseUrl : undefined, env, file })
    if (found === undefined || row.key === undefined) continue
    const origin = found.origin === 'profile' ? `profile ${profileName}` : found.origin
    rows.push({ key: row.key, value: found.value, origin })
  }
  const keyVariable = KEY_VARIABLES.find((name) => variable(env, name) !== undefined)
  const keyOrigin =
    keyVariable ?? (storedKeyOf(profile) || file.apiKeyCommand ? `profile ${profileName}` : undefined)
  return keyOrigin === undefined
    ? rows
    : [...rows, { key: 'apiKey', value: '(not shown)', origin: keyOrigin }]
}

/** A context with `--local` does not tell whether the flag or a setting chose it, so the setting is looked at first. */
async function localOf(
  { env, globals }: Context,
  file: Readonly<Record<string, string>>,
): Promise<SettingValue> {
  const sources = { env, file: async () => file }
  const bySetting = await findLocal({ ...sources, globals: { ...globals, local: false } })
  return bySetting.value === 'off' ? findLocal({ ...sources, globals }) : bySetting
}
