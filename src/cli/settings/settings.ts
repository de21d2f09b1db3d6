/**
 * The settings of one command: profile, service URL, key, models. They are read once, when the command first needs them, so
 * that `--help` reads no file. One error reports all that are missing.
 */
import { parseBaseUrl } from '../../client/service-access.js'
import { RushesError, usageError } from '../../errors.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { didYouMean } from '../../protocol/text.js'
import { type Env, variable } from '../process/io.js'
import type { Terminal } from '../terminal/output.js'
import { type ConfigFile, type RawProfile, settingOf, storedKeyOf } from './config-file.js'
import type { Globals } from './globals.js'
import {
  isOn,
  keyVariableIn,
  LOCAL_ADDRESS,
  modelSetting,
  readSetting,
  SETTINGS,
  type SettingName,
} from './table.js'

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
  missingError(missing: readonly Missing[]): RushesError
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
  // A variable of a script that is not set must not become a profile.
  if (flags.profile === '')
    throw usageError('--profile has no value.', 'Give the name of a profile, or leave out the flag.')
  const profileName = flags.profile ?? variable(env, 'RUSHES_PROFILE') ?? 'default'
  const profile = once((): RawProfile => {
    const known = config.profiles()
    if (createsProfile || known.includes(profileName)) return config.read(profileName)
    throw usageError(
      `The config file has no profile "${profileName}".${didYouMean(profileName, known)}`,
      `Profiles: ${known.join(', ')}. Create one with \`rushes login --profile <name>\` or \`rushes config set <key> <value> ` +
        `--profile <name>\`.`,
    )
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
    return text && serviceUrlOf(text, env)
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
    missingError(missing) {
      if (globals.local) return missingError(missing)
      const address = findBaseUrl()
      const hasKey =
        (apiKey ?? keyVariableIn(env) ?? setting('apiKeyCommand') ?? storedKeyOf(profile())) !== undefined
      return missingError([
        ...(address === undefined ? [NO_BASE_URL] : []),
        ...missing,
        ...(hasKey ? [] : [noKey(address)]),
      ])
    },
  }
}

/** Throws `usage`, and `insecure_url` for plain http that is not loopback. */
export const serviceUrlOf = (text: string, env: Env): string =>
  parseBaseUrl(text, { allowHttp: variable(env, 'RUSHES_ALLOW_HTTP') === '1' })

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

/** A setting that a command needs and that is not set. */
export interface Missing {
  readonly code: 'no_base_url' | 'no_api_key' | 'usage'
  readonly text: string
  readonly hint: string
}

export const NO_BASE_URL: Missing = {
  code: 'no_base_url',
  text: 'service URL',
  hint:
    'Store the service URL and the key with `rushes login --base-url <url>`, or set the URL with --base-url <url>, ' +
    'RUSHES_BASE_URL or `rushes config set baseUrl <url>`. ' +
    'To try rushes without a service, or for local runs, add --local.',
}

const noKey = (baseUrl?: string): Missing => ({
  code: 'no_api_key',
  text: baseUrl === undefined ? 'API key' : `API key for ${new URL(baseUrl).origin}`,
  hint: 'Set the key with `rushes login`, RUSHES_API_KEY, RUSHES_API_KEY_FILE or RUSHES_API_KEY_COMMAND.',
})

/** Creates one error for all missing settings, so that the user can fix them together. */
export function missingError(missing: readonly Missing[]): RushesError {
  const code = missing.find((each) => each.code !== 'no_api_key')?.code ?? 'no_api_key'
  return new RushesError(code, `Not set: ${missing.map(({ text }) => text).join(', ')}.`, {
    hint: missing.map(({ hint }) => hint).join('\n  '),
  })
}

interface ModelSource extends Pick<Settings, 'globals' | 'setting'> {
  models(): Promise<{ defaultOf(kind: Kind): ModelDocument | undefined }>
}

/**
 * Returns the model of a kind: with `--local`, the default model of the local service. Undefined when no setting has a
 * model.
 */
export const modelFor = async (
  { globals, setting, models }: ModelSource,
  kind: Kind,
): Promise<string | undefined> =>
  globals.local ? (await models()).defaultOf(kind)?.name : setting(`${kind}Model`)

/** Returns the models of the kinds that have one. */
export async function modelsByKind(source: ModelSource): Promise<Readonly<Partial<Record<Kind, string>>>> {
  const models: Partial<Record<Kind, string>> = {}
  for (const kind of KINDS) {
    const model = await modelFor(source, kind)
    if (model !== undefined) models[kind] = model
  }
  return models
}

/** Creates the entry for a missing model. `hintOf` receives the setting's environment variable and config key. */
export function missingModel(kind: Kind, hintOf: (environment: string, key: string) => string): Missing {
  const { environment, key } = modelSetting(kind)
  return { code: 'usage', text: `${kind} model`, hint: hintOf(environment, key) }
}

/** Creates the error for a model of another kind. `isTyped`: whether it is on the line, and not from a setting. */
export function wrongKind({ name, kind }: ModelDocument, wanted: Kind, isTyped: boolean): RushesError {
  if (isTyped)
    return usageError(`${name} is a model of kind ${kind}.`, `Use \`rushes run ${kind} --model ${name}\`.`)
  const { environment, key } = modelSetting(wanted)
  return usageError(
    `The ${wanted} model is set to ${name}, which is a model of kind ${kind}.`,
    `Change ${environment} or run \`rushes config set ${key} <provider/name>\`, or add --model <provider/name>.`,
  )
}
