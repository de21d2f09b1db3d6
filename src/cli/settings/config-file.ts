/**
 * The config file, read and written by `conf`: mode 0600 in a folder of mode 0700. `conf` is loaded only when there is
 * something to read or write, since that takes half of the start-up time.
 */

import { existsSync } from 'node:fs'
import { usageError } from '../../errors.js'
import { describeError, isBusy, isSystemError } from '../../host/system-error.js'
import { isObject } from '../../protocol/parse.js'
import { configPath } from './folders.js'

export interface ConfigFile {
  readonly path: string
  /** An empty profile when it does not exist. Throws `usage` when the file cannot be read. */
  read(profile: string): Promise<RawProfile>
  /** The names of the profiles. Throws `usage` when the file cannot be read. */
  profiles(): Promise<readonly string[]>
  /**
   * The paths of API keys that were written into the file by hand, and are not used. Throws `usage` when the file cannot
   * be read.
   */
  unreadKeys(profile: string): Promise<readonly string[]>
  /** Changes of several processes wait for each other. Throws `usage`. */
  update(profile: string, change: (profile: RawProfile) => RawProfile): Promise<void>
}

export function createConfigFile(folder: string): ConfigFile {
  const path = configPath(folder)
  return {
    path,
    async read(profile) {
      return existsSync(path) ? profileIn((await open(folder, path)).store, profile) : {}
    },
    async profiles() {
      return existsSync(path) ? Object.keys(profilesIn((await open(folder, path)).store)) : []
    },
    async unreadKeys(profile) {
      return existsSync(path) ? unreadKeysIn((await open(folder, path)).store, profile) : []
    },
    async update(profile, change) {
      try {
        // `conf` would create the folder with the default mode, readable by others.
        const { makeFolders } = await import('../../host/directories.js')
        makeFolders(folder, 0o700)
        const conf = await open(folder, path)
        await whileLocked(`${path}.lock`, () => {
          const file = conf.store
          conf.set('profiles', { ...profilesIn(file), [profile]: change(profileIn(file, profile)) })
        })
      } catch (error) {
        if (!isSystemError(error) && !isBusy(error)) throw error
        throw usageError(
          `Cannot write the config file ${describeError(error, path)}.`,
          'To use another folder, set RUSHES_CONFIG_DIR.',
        )
      }
    },
  }
}

/** Without a lock where there is none: no SQLite package for this system, or a file system without locks. */
async function whileLocked(path: string, work: () => void): Promise<void> {
  const { BUSY_TIMEOUT_MS, exclusively } = await import('../../host/database-file.js')
  let isLocked = false
  try {
    exclusively(path, BUSY_TIMEOUT_MS, () => {
      isLocked = true
      work()
    })
  } catch (error) {
    if (isLocked || isBusy(error)) throw error
    work()
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
    throw usageError(
      `Cannot read the config file ${describeError(error, path)}.`,
      'Fix the file, or move it away and run `rushes login` and `rushes config set` again.',
    )
  }
}

/** Editors on Windows put a byte order mark at the beginning. */
function parseConfig(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (!isObject(value)) throw new Error('it must be a JSON object ({…})')
  const { profiles = {} } = value
  // Profiles of another shape would be lost with the next change.
  if (!isObject(profiles)) throw new Error('"profiles" must be a JSON object ({…})')
  const wrong = Object.keys(profiles).find((name) => !isObject(profiles[name]))
  if (wrong !== undefined) throw new Error(`"profiles.${wrong}" must be a JSON object ({…})`)
  return { ...value }
}

/**
 * A profile as the file has it: `{ baseUrl, models: { video, image }, …, apiKey: { value, origin } }`. The file may be edited
 * by hand: values of other shapes are ignored, and unknown keys are kept.
 */
export type RawProfile = Readonly<Record<string, unknown>>

export interface StoredKey {
  readonly value: string
  /** The key is sent to this origin only. */
  readonly origin: string
}

/** The profiles of a config file by name. */
export const profilesIn = (file: unknown): Readonly<Record<string, unknown>> =>
  isObject(file) && isObject(file.profiles) ? file.profiles : {}

export function profileIn(file: unknown, name: string): RawProfile {
  const profiles = profilesIn(file)
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  return isObject(found) ? found : {}
}

const valueAt = (profile: RawProfile, key: string): unknown =>
  key.split('.').reduce<unknown>((holder, part) => (isObject(holder) ? holder[part] : undefined), profile)

/** A setting as text; a list is joined by commas. */
const asText = (value: unknown): string | undefined => {
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string').join(',')
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** The values of the given keys that are set in the profile. */
export const settingsOf = (profile: RawProfile, keys: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    keys.flatMap((key) => {
      const value = asText(valueAt(profile, key))
      return value === undefined || value === '' ? [] : [[key, value]]
    }),
  )

export function storedKeyOf({ apiKey }: RawProfile): StoredKey | undefined {
  return isObject(apiKey) && typeof apiKey.value === 'string' && typeof apiKey.origin === 'string'
    ? { value: apiKey.value, origin: apiKey.origin }
    : undefined
}

/** The paths of the API keys in a config file other than the one that `rushes login` stores. */
function unreadKeysIn(file: unknown, profile: string): readonly string[] {
  const raw = profileIn(file, profile)
  const keysOf = (holder: unknown) =>
    Object.keys(isObject(holder) ? holder : {}).filter((key) => /^api[-_]?key$/i.test(key))
  const isStored = (key: string) => key === 'apiKey' && storedKeyOf(raw) !== undefined
  const unread = keysOf(raw).filter((key) => !isStored(key))
  return [...keysOf(file), ...unread.map((key) => `profiles.${profile}.${key}`)]
}

/** The profile with a value set, or removed when undefined. A group that becomes empty is removed too. */
export function withValue(profile: RawProfile, key: string, value: unknown): RawProfile {
  const [first = '', ...rest] = key.split('.')
  const { [first]: old, ...others } = profile
  if (rest.length === 0) return value === undefined ? others : { ...others, [first]: value }
  const group = withValue(isObject(old) ? old : {}, rest.join('.'), value)
  return Object.keys(group).length === 0 ? others : { ...others, [first]: group }
}
