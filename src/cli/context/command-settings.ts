/** The settings of one command. Each setting is read when the command first needs it, so `--help` reads no file. */
import type { Clock } from '../../host/clock.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { type ConfigFile, type RawProfile, settingsOf, storedKeyOf } from '../settings/config-file.js'
import {
  checkProfile,
  type Missing,
  missingError,
  NO_BASE_URL,
  noKey,
} from '../settings/required-settings.js'
import {
  addressHint,
  CONFIG_KEYS,
  findSetting,
  isLocal,
  KEY_VARIABLES,
  type SettingName,
  variable,
} from '../settings/table.js'
import type { Output } from '../terminal/output.js'

export interface Settings {
  profile(): Promise<RawProfile>
  setting(name: SettingName, flag?: string): Promise<string | undefined>
  /** Returns the service's URL. Throws `usage`, `no_base_url` or `insecure_url`. */
  baseUrl(): Promise<string>
  /** Whether `--local`, RUSHES_LOCAL or the setting `local` selects the local service. */
  isLocal(): Promise<boolean>
}

export interface CommandSettings extends Settings {
  /** Returns the service's URL, or undefined when it is not set. Throws `usage` or `insecure_url`. */
  findBaseUrl(): Promise<string | undefined>
  /** The missing API key of a service. */
  noKeyFor(address: string): Missing
  /**
   * Returns the API key for the origin, or undefined when no source of a key is set. Throws `no_api_key` or the
   * signal's reason.
   */
  findApiKey(origin: string): Promise<string | undefined>
  /**
   * Returns the key as a missing setting, for a command without a service URL. Empty when any source of a key is set.
   */
  missingKey(): Promise<readonly Missing[]>
}

export interface CommandSettingsOptions {
  readonly globals: Globals
  readonly env: Env
  readonly out: Output
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly config: ConfigFile
  readonly profileName: string
  readonly createsProfile: boolean
  readonly reportsAddress: boolean
  /** The service of a run. Replaces the service URL of the settings. */
  readonly home?: { readonly address: string } | undefined
  /**
   * API keys that were found, by origin. A key is read only once: its source may be a pipe, or a command that asks the
   * user.
   */
  readonly keys: Map<string, string>
}

export function createCommandSettings(options: CommandSettingsOptions): CommandSettings {
  const {
    globals,
    env,
    out,
    clock,
    signal,
    config,
    profileName,
    createsProfile,
    reportsAddress,
    home,
    keys,
  } = options
  const profile = once(async () => {
    if (!createsProfile) checkProfile(profileName, await config.profiles())
    for (const unreadKey of await config.unreadKeys(profileName))
      out.warn(
        `${config.path}: "${unreadKey}" is not read, and the key in it is not protected. ` +
          `Remove it, and store the key with \`rushes login\`.`,
      )
    return config.read(profileName)
  })
  const setting: CommandSettings['setting'] = async (name, flag) =>
    findSetting(name, { flag, env, file: settingsOf(await profile(), CONFIG_KEYS) })

  const findBaseUrl = once(async (): Promise<string | undefined> => {
    const { parseBaseUrl } = await import('../../client/service-access.js')
    const text = home?.address ?? (await setting('baseUrl', globals.baseUrl))
    if (text === undefined) return undefined
    const address = parseBaseUrl(text, { allowHttp: variable(env, 'RUSHES_ALLOW_HTTP') === '1' })
    const hint = addressHint(address)
    if (hint !== undefined && !reportsAddress && home === undefined) out.warn(hint)
    return address
  })

  async function baseUrl(): Promise<string> {
    const found = await findBaseUrl()
    if (found === undefined) throw missingError([NO_BASE_URL])
    return found
  }

  // An unreadable config file is reported by the first command that needs a setting. `doctor` continues without the
  // file.
  const settingsOrEmpty = () =>
    profile().then(
      (stored) => settingsOf(stored, CONFIG_KEYS),
      () => ({}),
    )

  const keyCommandOf = (raw: RawProfile) => settingsOf(raw, ['apiKeyCommand']).apiKeyCommand

  async function findApiKey(origin: string): Promise<string | undefined> {
    const found = keys.get(origin) ?? (await readApiKey(origin))
    if (found !== undefined) keys.set(origin, found)
    return found
  }

  async function readApiKey(origin: string): Promise<string | undefined> {
    const { findKey } = await import('../settings/key.js')
    const raw = await profile()
    const stored = storedKeyOf(raw)
    // The service of a run gets only a key that names it: a key of the environment may be for another service.
    const isOfProfile = settingsOf(raw, ['baseUrl']).baseUrl === home?.address
    const own = { env: {}, fileCommand: isOfProfile ? keyCommandOf(raw) : undefined }
    return findKey({
      ...(home === undefined ? { env, fileCommand: keyCommandOf(raw) } : own),
      stored: home === undefined || stored?.origin === origin ? stored : undefined,
      origin,
      signal,
      clock,
      showsStderr: !out.mode.json,
      warn: out.warn,
    })
  }

  function noKeyFor(address: string): Missing {
    if (home === undefined) return noKey(address)
    const key = KEY_VARIABLES.find((name) => variable(env, name) !== undefined)
    const why =
      key === undefined ? '' : ` ${key} does not name its service: to use it, add --base-url ${address}.`
    return { ...noKey(address), hint: `Store it with \`rushes login --base-url ${address}\`.${why}` }
  }

  async function missingKey(): Promise<readonly Missing[]> {
    const isVariableSet = KEY_VARIABLES.some((name) => variable(env, name) !== undefined)
    const raw = await profile()
    const stored = storedKeyOf(raw) !== undefined || keyCommandOf(raw) !== undefined
    return isVariableSet || stored ? [] : [noKey()]
  }

  return {
    profile,
    setting,
    findBaseUrl,
    baseUrl,
    noKeyFor,
    findApiKey,
    isLocal: () => isLocal({ globals, env, file: settingsOrEmpty }),
    missingKey,
  }
}

/** Wraps `make` so that only the first call runs it; later calls return the same result. */
export function once<Result>(make: () => Result): () => Result {
  let made: Result | undefined
  return () => {
    made ??= make()
    return made
  }
}
