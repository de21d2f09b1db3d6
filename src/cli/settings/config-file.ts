/**
 * The config file, written by `conf` with mode 0600 in a folder of mode 0700. `conf` is loaded only for a change, because
 * loading it takes half of the start-up time.
 */
import { existsSync, readFileSync } from 'node:fs'
import { usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { isObject } from '../../protocol/parse.js'
import { configPath } from './folders.js'

export interface ConfigFile {
  readonly path: string
  /** Reads a profile. Returns an empty profile when it does not exist. Throws `usage` when the file cannot be read. */
  read(profile: string): RawProfile
  /** Returns the names of the profiles; `default` always exists. Throws `usage` when the file cannot be read. */
  profiles(): readonly string[]
  /**
   * Returns the paths of API keys that the user wrote into the file by hand and that rushes does not use. Throws
   * `usage` when the file cannot be read.
   */
  unreadKeys(profile: string): readonly string[]
  /** Changes a profile. Throws `usage`. */
  update(profile: string, change: (profile: RawProfile) => RawProfile): Promise<void>
}

export function createConfigFile(folder: string): ConfigFile {
  const path = configPath(folder)
  /** The content of the file, which a command reads once. */
  let content: Record<string, unknown> | undefined
  const file = () => {
    content ??= readFile(path)
    return content
  }
  async function update(profile: string, changed: (profile: RawProfile) => RawProfile): Promise<void> {
    try {
      // Creates the folder first: `conf` would use the default mode, which lets other users read it.
      const { makeFolders } = await import('../../host/directories.js')
      makeFolders(folder, 0o700)
      const conf = await open(folder, path)
      conf.set('profiles', {
        ...profilesIn(conf.store),
        [profile]: changed(profileIn(conf.store, profile)),
      })
      content = undefined
    } catch (error) {
      if (!isSystemError(error)) throw error
      throw usageError(
        `Cannot write the config file ${describeError(error, path)}.`,
        'To use another folder, set RUSHES_CONFIG_DIR.',
      )
    }
  }
  return {
    path,
    read: (profile) => profileIn(file(), profile),
    profiles: () => [...new Set(['default', ...Object.keys(profilesIn(file()))])],
    unreadKeys: (profile) => unreadKeysIn(file(), profile),
    update,
  }
}

/** Returns the content of the file; an empty object if it does not exist. Throws `usage`. */
function readFile(path: string): Record<string, unknown> {
  try {
    return existsSync(path) ? parseConfig(readFileSync(path, 'utf8')) : {}
  } catch (error) {
    throw unreadable(path, error)
  }
}

async function open(folder: string, path: string) {
  const { default: Conf } = await import('conf')
  try {
    return new Conf<Record<string, unknown>>({
      cwd: folder,
      configName: 'config',
      configFileMode: 0o600,
      clearInvalidConfig: false,
      accessPropertiesByDotNotation: false,
      projectName: 'rushes',
      deserialize: parseConfig,
    })
  } catch (error) {
    throw unreadable(path, error)
  }
}

const unreadable = (path: string, error: unknown) =>
  usageError(
    `Cannot read the config file ${describeError(error, path)}.`,
    'Fix the file, or move it away and run `rushes login` and `rushes config set` again.',
  )

/** Parses the file without the byte order mark that some Windows editors add. */
function parseConfig(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (!isObject(value)) throw new Error('it must be a JSON object ({…})')
  const { profiles = {} } = value
  // Rejects profiles of another type, which the next change would delete.
  if (!isObject(profiles)) throw new Error('"profiles" must be a JSON object ({…})')
  const invalidName = Object.keys(profiles).find((name) => !isObject(profiles[name]))
  if (invalidName !== undefined) throw new Error(`"profiles.${invalidName}" must be a JSON object ({…})`)
  return { ...value }
}

/**
 * A profile as stored in the file: `{ baseUrl, models: { video, image }, …, apiKey: { value, origin } }`. Users may
 * edit the file: values of other types are ignored, and unknown keys are kept.
 */
export type RawProfile = Readonly<Record<string, unknown>>

export interface StoredKey {
  readonly value: string
  /** The key is sent to this origin only. */
  readonly origin: string
}

type RawConfig = Readonly<Record<string, unknown>>

/** Returns the profiles of a config file by name. */
const profilesIn = ({ profiles }: RawConfig): RawConfig => (isObject(profiles) ? profiles : {})

function profileIn(file: RawConfig, name: string): RawProfile {
  const profiles = profilesIn(file)
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  return isObject(found) ? found : {}
}

/** Keys whose value is shown as JSON if it is an object or a list. A limit of another type is refused, and not ignored. */
const AS_JSON: readonly string[] = ['prices', 'maxCost']
/** Keys that have a value and also hold other settings. */
const GROUPS: readonly string[] = ['local']
/** Name of a setting's own value where other keys continue its key: `local: { on, models }`. */
const OWN_VALUE = 'on'

function valueAt(profile: RawProfile, key: string): unknown {
  const found = key
    .split('.')
    .reduce<unknown>((holder, part) => (isObject(holder) ? holder[part] : undefined), profile)
  return isObject(found) && GROUPS.includes(key) ? found[OWN_VALUE] : found
}

/** Converts a setting to text. The values of a list are joined with commas. */
const asText = (value: unknown, key: string): string | undefined => {
  if (AS_JSON.includes(key) && typeof value === 'object' && value !== null) return JSON.stringify(value)
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string').join(',')
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** Returns the values of the keys that are set in the profile. */
export const settingsOf = (profile: RawProfile, keys: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    keys.flatMap((key) => {
      const value = asText(valueAt(profile, key), key)
      return value === undefined || value === '' ? [] : [[key, value]]
    }),
  )

export function storedKeyOf({ apiKey }: RawProfile): StoredKey | undefined {
  return isObject(apiKey) && typeof apiKey.value === 'string' && typeof apiKey.origin === 'string'
    ? { value: apiKey.value, origin: apiKey.origin }
    : undefined
}

/** Returns the paths of all API keys in a config file, except the key that `rushes login` stores. */
function unreadKeysIn(file: RawConfig, profile: string): readonly string[] {
  const raw = profileIn(file, profile)
  const keysOf = (holder: unknown) =>
    Object.keys(isObject(holder) ? holder : {}).filter((key) => /^api[-_]?key$/i.test(key))
  const isStored = (key: string) => key === 'apiKey' && storedKeyOf(raw) !== undefined
  const unread = keysOf(raw).filter((key) => !isStored(key))
  return [...keysOf(file), ...unread.map((key) => `profiles.${profile}.${key}`)]
}

/** Returns the profile with the value set, or removed when undefined. A group that becomes empty is removed too. */
export function withValue(profile: RawProfile, key: string, value: unknown): RawProfile {
  const [first = '', ...rest] = key.split('.')
  const { [first]: old, ...others } = profile
  const isGroup = GROUPS.includes(first)
  if (rest.length === 0 && !(isGroup && isObject(old)))
    return value === undefined ? others : { ...others, [first]: value }
  const fields = isObject(old) ? old : isGroup && old !== undefined ? { [OWN_VALUE]: old } : {}
  const { [OWN_VALUE]: own, ...group } = withValue(
    fields,
    rest.length === 0 ? OWN_VALUE : rest.join('.'),
    value,
  )
  if (Object.keys(group).length === 0) return own === undefined ? others : { ...others, [first]: own }
  return { ...others, [first]: own === undefined ? group : { [OWN_VALUE]: own, ...group } }
}
