/**
 * The config file, read and written by `conf`: mode 0600 in a folder of mode 0700. `conf` is loaded only when there is
 * something to read or write, since that takes half of the start-up time.
 */

import { existsSync } from 'node:fs'
import { usageError } from '../../errors.js'
import { describeError, isBusy, isSystemError } from '../../host/system-error.js'
import { isObject } from '../../protocol/parse.js'
import { configPath } from './folders.js'
import { profileIn, profilesIn, type RawProfile, unreadKeysIn } from './profile.js'

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

/** Without a lock where none can be had: no SQLite package for this system, or a file system without locks. */
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
  // What is not read here would be replaced by the next change.
  if (!isObject(profiles)) throw new Error('"profiles" must be a JSON object ({…})')
  const wrong = Object.keys(profiles).find((name) => !isObject(profiles[name]))
  if (wrong !== undefined) throw new Error(`"profiles.${wrong}" must be a JSON object ({…})`)
  return { ...value }
}
