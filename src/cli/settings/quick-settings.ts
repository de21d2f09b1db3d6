/**
 * Reads settings before a command has a context, for the model of the line. Skips what cannot be read, and warns of
 * nothing.
 */
import { parseBaseUrl } from '../../client/service-access.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import {
  type ConfigFile,
  chooseProfile,
  createConfigFile,
  type RawProfile,
  settingsOf,
} from './config-file.js'
import { foldersOf } from './folders.js'
import { CONFIG_KEYS, findSetting, isLocal, LOCAL_ADDRESS, type SettingName } from './table.js'

export interface QuickSettings {
  readonly config: ConfigFile
  setting(name: SettingName, flag?: string): Promise<string | undefined>
  /** The service's name in the journal: its URL, or `local`. Undefined if none is set, or if it is not valid. */
  address(): Promise<string | undefined>
}

export const readOr = async <Value>(fallback: Value, read: () => Promise<Value> | Value): Promise<Value> => {
  try {
    return await read()
  } catch {
    return fallback
  }
}

export function createQuickSettings(env: Env, globals: Globals): QuickSettings {
  const config = createConfigFile(foldersOf(env).config)
  const profileName = chooseProfile(globals.profile, env)
  const profile = () => readOr<RawProfile>({}, () => config.read(profileName))
  const file = async (): Promise<Readonly<Record<string, string>>> => settingsOf(await profile(), CONFIG_KEYS)

  const setting: QuickSettings['setting'] = (name, flag) =>
    readOr(undefined, async () => findSetting(name, { flag, env, file: await file() }))

  return {
    config,
    setting,
    async address() {
      if (await readOr(false, () => isLocal({ globals, env, file }))) return LOCAL_ADDRESS
      const text = await setting('baseUrl', globals.baseUrl)
      return text && readOr(undefined, () => parseBaseUrl(text, { allowHttp: true }))
    },
  }
}
