/**
 * The config file, read and written by `conf`: mode 0600 in a folder of mode 0700. `conf` is loaded only when there is
 * something to read or write, since that takes half of the start-up time.
 */

import { existsSync } from 'node:fs'
import { usageError } from '../../errors.js'
import { describeReason, isSystemError } from '../../host/system-error.js'
import { configPath } from './folders.js'
import { profileIn, profilesIn, type RawProfile } from './profile.js'

export interface ConfigFile {
  readonly path: string
  /** An empty profile when it does not exist. Throws `usage` when the file cannot be read. */
  read(profile: string): Promise<RawProfile>
  /** The names of the profiles. Throws `usage` when the file cannot be read. */
  profiles(): Promise<readonly string[]>
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
    async update(profile, change) {
      try {
        // `conf` would create the folder with the default mode, readable by others.
        const { makeFolders } = await import('../../host/directories.js')
        makeFolders(folder, 0o700)
        const conf = await open(folder, path)
        conf.set('profiles', { ...profilesIn(conf.store), [profile]: change(profileIn(conf.store, profile)) })
      } catch (error) {
        if (!isSystemError(error)) throw error
        throw usageError(
          `${path}: the config file cannot be written (${describeReason(error)}).`,
          'To use another folder, set RUSHES_CONFIG_DIR.',
        )
      }
    },
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
    })
  } catch (error) {
    throw usageError(
      `${path}: the config file cannot be read (${describeReason(error)}).`,
      'Fix the file, or move it away and run `rushes login` and `rushes config set` again.',
    )
  }
}
