/**
 * The settings of one command: profile, service URL, key. They are read once, when the command first needs them, so that
 * `--help` reads no file.
 */
import { parseBaseUrl } from '../../client/service-access.js'
import { type RushesError, usageError } from '../../errors.js'
import { variable } from '../process/io.js'
import type { Terminal } from '../terminal/output.js'
import { type ConfigFile, type RawProfile, settingOf, storedKeyOf } from './config-file.js'
import type { Globals } from './globals.js'
import { checkProfile, type Missing, missingError, NO_BASE_URL, noKey } from './required-settings.js'
import { isOn, KEY_VARIABLES, LOCAL_ADDRESS, readSetting, SETTINGS, type SettingName } from './table.js'

export interface Settings {
  /** The flags of the line. `local` is also true because of RUSHES_LOCAL or the setting. */
  readonly globals: Globals
  readonly profileName: string
  /** Throws `usage` if the config file cannot be read, or does not have the profile. */
  profile(): RawProfile
  /** Throws `usage` for an invalid value. */
  setting(name: SettingName, flag?: string): string | undefined
  /** The service's name in the journal: its URL, or `local`. Throws `usage`, `no_base_url` or `insecure_url`. */
  address(): Promise<string>
  /** Like `address`, but undefined if no service is configured. */
  findAddress(): Promise<string | undefined>
  /** The API key of the service. Undefined if no source of a key is set. Throws `no_api_key` or the signal's reason. */
  findApiKey(): Promise<string | undefined>
  /** Returns one error for these missing settings, and for a missing service URL and key. */
  missingError(missing: readonly Missing[]): Promise<RushesError>
}

export interface SettingsOptions {
  readonly globals: Globals
  /** The API key to use instead of the configured one. */
  readonly apiKey?: string
  /** Whether the command may create the profile of `--profile`. For other commands the profile must exist. */
  readonly createsProfile?: boolean
  /** Whether the command ignores RUSHES_LOCAL and the setting `local`. */
  readonly ignoresLocal?: boolean
}

export function openSettings(
  app: Terminal & { readonly config: ConfigFile },
  { globals: flags, apiKey, createsProfile = false, ignoresLocal = false }: SettingsOptions,
): Settings {
  const { env, out, config } = app
  if (flags.local && flags.baseUrl !== undefined)
    throw usageError('--local and --base-url cannot be used together.', 'Use only one of them.')
  const profileName = flags.profile ?? variable(env, 'RUSHES_PROFILE') ?? 'default'
  const profile = once((): RawProfile => {
    if (!createsProfile) checkProfile(profileName, config.profiles())
    return config.read(profileName)
  })
  const setting: Settings['setting'] = (name, flag) => readSetting(name, { flag, env, profile })
  const globals = { ...flags, local: isLocal() }

  /** An unreadable config file is reported by the first command that needs a setting; `doctor` continues without it. */
  function isLocal(): boolean {
    const { local, baseUrl } = flags
    if (local || baseUrl !== undefined || ignoresLocal) return local
    const isSet = variable(env, 'RUSHES_LOCAL') !== undefined
    // A service URL in the environment overrides `local` in the config file.
    if (!isSet && variable(env, 'RUSHES_BASE_URL') !== undefined) return false
    return isOn(readSetting('local', { env, profile: () => (isSet ? {} : readOr({}, profile)) }) ?? 'off')
  }

  const findBaseUrl = once((): string | undefined => {
    const text = setting('baseUrl', globals.baseUrl)
    return text && parseBaseUrl(text, { allowHttp: variable(env, 'RUSHES_ALLOW_HTTP') === '1' })
  })
  // Its source may be a pipe, or a command that asks the user.
  const findApiKey = once(async (): Promise<string | undefined> => {
    if (apiKey !== undefined) return apiKey
    const { findKey } = await import('./key.js')
    return findKey({
      env,
      fileCommand: settingOf(profile(), SETTINGS.apiKeyCommand.key),
      stored: storedKeyOf(profile()),
      origin: new URL(findBaseUrl() ?? '').origin,
      signal: app.interrupts.first,
      warn: out.warn,
      showsStderr: !out.mode.json,
    })
  })
  const findAddress = async () => (globals.local ? LOCAL_ADDRESS : findBaseUrl())
  return {
    globals,
    profileName,
    profile,
    setting,
    findAddress,
    findApiKey,
    async address() {
      const found = await findAddress()
      if (found === undefined) throw missingError([NO_BASE_URL])
      return found
    },
    async missingError(missing) {
      if (globals.local) return missingError(missing)
      const address = findBaseUrl()
      if (address !== undefined)
        return missingError((await findApiKey()) === undefined ? [...missing, noKey(address)] : missing)
      const hasKey =
        KEY_VARIABLES.some((name) => variable(env, name) !== undefined) ||
        storedKeyOf(profile()) !== undefined ||
        setting('apiKeyCommand') !== undefined
      return missingError([NO_BASE_URL, ...missing, ...(hasKey ? [] : [noKey()])])
    },
  }
}

function readOr<Value>(fallback: Value, read: () => Value): Value {
  try {
    return read()
  } catch {
    return fallback
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
