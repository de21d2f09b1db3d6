/**
 * The config file, written by `conf` with mode 0600 in a folder of mode 0700. `conf` is loaded only for a change, because
 * loading it takes half of the start-up time.
 */
import { existsSync, readFileSync } from 'node:fs'
import { messageOf, usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { isObject } from '../../protocol/parse.js'
import { configPath } from './folders.js'

export class ConfigFile {
  readonly path: string
  readonly #folder: string
  /** The content of the file, which a command reads once. */
  #content: RawConfig | undefined

  constructor(folder: string) {
    this.#folder = folder
    this.path = configPath(folder)
  }

  /** Reads a profile. Returns an empty profile when it does not exist. Throws `usage` when the file cannot be read. */
  read(profile: string): RawProfile {
    return profileIn(this.#read(), profile)
  }

  /** Returns the names of the profiles; `default` always exists. Throws `usage` when the file cannot be read. */
  profiles(): readonly string[] {
    return [...new Set(['default', ...Object.keys(profilesIn(this.#read()))])]
  }

  /** Changes a profile. Throws `usage`. */
  async update(profile: string, change: (profile: RawProfile) => RawProfile): Promise<void> {
    try {
      // Creates the folder first: `conf` would use the default mode, which lets other users read it.
      const { makeFolders } = await import('../../host/file-system.js')
      makeFolders(this.#folder, 0o700)
      const conf = await open(this.#folder, this.path)
      conf.set('profiles', { ...profilesIn(conf.store), [profile]: change(profileIn(conf.store, profile)) })
      this.#content = undefined
    } catch (error) {
      if (!isSystemError(error)) throw error
      throw usageError(
        `Cannot write the config file ${describeError(error, this.path)}.`,
        'To use another folder, set RUSHES_CONFIG_DIR.',
      )
    }
  }

  #read(): RawConfig {
    try {
      this.#content ??= existsSync(this.path) ? parseConfig(readFileSync(this.path, 'utf8')) : {}
      return this.#content
    } catch (error) {
      throw unreadable(this.path, error)
    }
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
  const value = parseJsonUnquoted(text.replace(/^\uFEFF/, ''))
  if (!isObject(value)) throw new Error('it must be a JSON object ({…})')
  const { profiles = {} } = value
  // Rejects profiles of another type, which the next change would delete.
  if (!isObject(profiles)) throw new Error('"profiles" must be a JSON object ({…})')
  const invalidName = Object.keys(profiles).find((name) => !isObject(profiles[name]))
  if (invalidName !== undefined) throw new Error(`"profiles.${invalidName}" must be a JSON object ({…})`)
  return { ...value }
}

/** Throws the errors of `JSON.parse` without the text that they quote, which may be the API key. */
function parseJsonUnquoted(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(messageOf(error).replace(/, (\.{3})?".*$/s, ' in JSON'))
  }
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
const AS_JSON: readonly string[] = ['prices', 'maxCost', 'maxCostPerDay']

/**
 * Returns a setting of the profile as text; a list is joined with commas. `models.video` in a file that was written by hand
 * is found too.
 */
export function settingOf(profile: RawProfile, key: string): string | undefined {
  const value =
    profile[key] ??
    key.split('.').reduce<unknown>((holder, part) => (isObject(holder) ? holder[part] : undefined), profile)
  if (AS_JSON.includes(key) && typeof value === 'object' && value !== null) return JSON.stringify(value)
  if (Array.isArray(value)) return value.filter((each) => typeof each === 'string').join(',') || undefined
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) || undefined : undefined
}

export function storedKeyOf({ apiKey }: RawProfile): StoredKey | undefined {
  return isObject(apiKey) && typeof apiKey.value === 'string' && typeof apiKey.origin === 'string'
    ? { value: apiKey.value, origin: apiKey.origin }
    : undefined
}

/** Returns the profile with the value set, or removed when undefined. A group that becomes empty is removed too. */
export function withValue(profile: RawProfile, key: string, value: unknown): RawProfile {
  const { [key]: _, ...others } = profile
  // The models of the kinds are in one object: `models: { video, image }`.
  if (!key.startsWith('models.')) return value === undefined ? others : { ...others, [key]: value }
  const [group = '', field = ''] = key.split('.')
  const { [group]: old, ...rest } = others
  const fields = withValue(isObject(old) ? old : {}, field, value)
  return Object.keys(fields).length === 0 ? rest : { ...rest, [group]: fields }
}
