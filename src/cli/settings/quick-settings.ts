/**
 * Reads settings before a command has a context, for the model of the line. Skips what cannot be read, and warns of
 * nothing.
 */
import { createHash } from 'node:crypto'
import { parseBaseUrl } from '../../client/service-access.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import {
  type ConfigFile,
  chooseProfile,
  createConfigFile,
  type RawProfile,
  settingsOf,
  storedKeyOf,
} from './config-file.js'
import { foldersOf } from './folders.js'
import { CONFIG_KEYS, findSetting, isLocal, LOCAL_ADDRESS, type SettingName, variable } from './table.js'

export interface QuickSettings {
  readonly config: ConfigFile
  setting(name: SettingName, flag?: string): Promise<string | undefined>
  /** The service's name in the journal: its URL, or `local`. Undefined if none is set, or if it is not valid. */
  address(): Promise<string | undefined>
  /** Identifies the account at a service. Undefined without a key for it. */
  account(address: string): Promise<string | undefined>
}

/** A key identifies an account. The hash does not reveal the key. */
export const accountOfKey = (apiKey: string): string => hashOf(`key ${apiKey.trim()}`)

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** A key in a file or from a command is identified by its source: reading it may block, or ask the user. */
function accountIn(env: Env, profile: RawProfile, origin: string): string | undefined {
  const key = variable(env, 'RUSHES_API_KEY')
  if (key !== undefined) return accountOfKey(key)
  const file = variable(env, 'RUSHES_API_KEY_FILE')
  if (file !== undefined) return hashOf(`file ${file}`)
  const command =
    variable(env, 'RUSHES_API_KEY_COMMAND') ?? settingsOf(profile, ['apiKeyCommand']).apiKeyCommand
  if (command !== undefined) return hashOf(`command ${command}`)
  const stored = storedKeyOf(profile)
  return stored?.origin === origin ? accountOfKey(stored.value) : undefined
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
    account: async (address) => accountIn(env, await profile(), new URL(address).origin),
  }
}
