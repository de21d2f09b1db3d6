/**
 * Reads settings before a command has a context: for completion, and for the model of the line. Skips what cannot be
 * read, warns of nothing, and does not load `conf`, because loading it takes half of the start-up time.
 */
import { readFileSync } from 'node:fs'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { profileIn, settingsOf } from './config-file.js'
import { configPath, foldersOf } from './folders.js'
import { CONFIG_KEYS, findSetting, isLocal, LOCAL_ADDRESS, type SettingName, variable } from './table.js'

export interface QuickSettings {
  /** Content of the config file; undefined if it cannot be read. */
  configFile(): Promise<unknown>
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
  const configFile = (): Promise<unknown> =>
    readOr(undefined, () =>
      JSON.parse(readFileSync(configPath(foldersOf(env).config), 'utf8').replace(/^\uFEFF/, '')),
    )

  const file = async (): Promise<Readonly<Record<string, string>>> => {
    const profile = globals.profile ?? variable(env, 'RUSHES_PROFILE') ?? 'default'
    return settingsOf(profileIn(await configFile(), profile), CONFIG_KEYS)
  }

  const setting: QuickSettings['setting'] = (name, flag) =>
    readOr(undefined, async () => findSetting(name, { flag, env, file: await file() })?.value)

  return {
    configFile,
    setting,
    async address() {
      if (await readOr(false, () => isLocal({ globals, env, file }))) return LOCAL_ADDRESS
      const text = await setting('baseUrl', globals.baseUrl)
      if (text === undefined || !URL.canParse(text)) return undefined
      // The form that `parseBaseUrl` returns, without its checks: loading them takes 2 ms.
      const { origin, pathname } = new URL(text)
      return `${origin}${pathname.replace(/\/+$/, '')}`
    },
  }
}
