/**
 * The settings of one command: profile, service URL, key. They are read once, when the command first needs them, so that
 * `--help` reads no file.
 */
import { parseBaseUrl } from '../../client/service-access.js'
import { type RushesError, usageError } from '../../errors.js'
import { variable } from '../process/io.js'
import type { Terminal } from '../terminal/output.js'
import { type ConfigFile, type RawProfile, settingsOf, storedKeyOf } from './config-file.js'
import type { Globals } from './globals.js'
import { checkProfile, type Missing, missingError, NO_BASE_URL, noKey } from './required-settings.js'
import { CONFIG_KEYS, findSetting, isOn, KEY_VARIABLES, LOCAL_ADDRESS, type SettingName } from './table.js'

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

/** Where a run of the journal lives. The address is a URL, or `local`. */
export interface RunHome {
  readonly address: string
  readonly profile: string
}

export interface SettingsOptions {
  readonly globals: Globals
  /** The service of a run, where none is configured. */
  readonly home?: RunHome | undefined
  /** The API key of the line: no other source of a key is used. */
  readonly apiKey?: string
  /** Whether the command may create the profile of `--profile`. For other commands the profile must exist. */
  readonly createsProfile?: boolean
  /** Whether the command ignores RUSHES_LOCAL and the setting `local`. */
  readonly ignoresLocal?: boolean
}

export function openSettings(
  app: Terminal & { readonly config: ConfigFile },
  options: SettingsOptions,
): Settings {
  const { env, out, config } = app
  const { home, createsProfile = false } = options
  if (options.globals.local && options.globals.baseUrl !== undefined)
    throw usageError('--local and --base-url cannot be used together.', 'Use only one of them.')
  const profileName = options.globals.profile ?? variable(env, 'RUSHES_PROFILE') ?? profileOf(home, config)
  const profile = once((): RawProfile => {
    if (!createsProfile) checkProfile(profileName, config.profiles())
    return config.read(profileName)
  })
  const file = () => settingsOf(profile(), CONFIG_KEYS)
  const setting: Settings['setting'] = (name, flag) => findSetting(name, { flag, env, file: file() })
  const globals = { ...options.globals, local: isLocal() }

  /** An unreadable config file is reported by the first command that needs a setting; `doctor` continues without it. */
  function isLocal(): boolean {
    const { local, baseUrl } = options.globals
    if (local || home !== undefined) return local || home?.address === LOCAL_ADDRESS
    if (baseUrl !== undefined || options.ignoresLocal === true) return false
    const isSet = variable(env, 'RUSHES_LOCAL') !== undefined
    // A service URL in the environment overrides `local` in the config file.
    if (!isSet && variable(env, 'RUSHES_BASE_URL') !== undefined) return false
    return isOn(findSetting('local', { env, file: isSet ? {} : readOr({}, file) }) ?? 'off')
  }

  const findBaseUrl = once((): string | undefined => {
    const text = home?.address ?? setting('baseUrl', globals.baseUrl)
    if (text === undefined) return undefined
    return parseBaseUrl(text, { allowHttp: variable(env, 'RUSHES_ALLOW_HTTP') === '1' })
  })

  const keyCommand = () => settingsOf(profile(), ['apiKeyCommand']).apiKeyCommand
  // Its source may be a pipe, or a command that asks the user.
  const findApiKey = once(async (): Promise<string | undefined> => {
    if (options.apiKey !== undefined) return options.apiKey
    const { origin } = new URL(findBaseUrl() ?? '')
    const { findKey } = await import('./key.js')
    const stored = storedKeyOf(profile())
    const sources = { env, fileCommand: keyCommand(), stored }
    // The service of a run gets only a key that names it: a key of the environment may be for another service.
    const isOfProfile = settingsOf(profile(), ['baseUrl']).baseUrl === home?.address
    const ofRun = {
      env: {},
      fileCommand: isOfProfile ? sources.fileCommand : undefined,
      stored: stored?.origin === origin ? stored : undefined,
    }
    return findKey({
      ...(home === undefined ? sources : ofRun),
      ...{ origin, signal: app.interrupts.first, clock: app.clock, warn: out.warn },
      showsStderr: !out.mode.json,
    })
  })

  /** Empty if any source of a key is set. */
  function missingKey(): readonly Missing[] {
    const isVariableSet = KEY_VARIABLES.some((name) => variable(env, name) !== undefined)
    return isVariableSet || storedKeyOf(profile()) !== undefined || keyCommand() !== undefined
      ? []
      : [noKey()]
  }

  function noKeyFor(address: string): Missing {
    if (home === undefined) return noKey(address)
    const key = KEY_VARIABLES.find((name) => variable(env, name) !== undefined)
    const why =
      key === undefined ? '' : ` ${key} does not name its service: to use it, add --base-url ${address}.`
    return { ...noKey(address), hint: `Store it with \`rushes login --base-url ${address}\`.${why}` }
  }

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
      if (address === undefined) return missingError([NO_BASE_URL, ...missing, ...missingKey()])
      return missingError((await findApiKey()) === undefined ? [...missing, noKeyFor(address)] : missing)
    },
  }
}

/** The profile of a run that was created with one that still exists. */
const profileOf = (home: RunHome | undefined, config: ConfigFile): string =>
  home !== undefined && config.profiles().includes(home.profile) ? home.profile : 'default'

export function readOr<Value>(fallback: Value, read: () => Value): Value {
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
