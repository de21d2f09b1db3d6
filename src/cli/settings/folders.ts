/** The config folder and the state folder of this user, and the files in them. */
import { join } from 'node:path'
import { type Folders, platformFolders } from '../../host/directories.js'
import type { Env } from '../process/io.js'
import { variable } from './table.js'

export function foldersOf(env: Env): Folders {
  const usual = platformFolders('rushes', env)
  return {
    config: variable(env, 'RUSHES_CONFIG_DIR') ?? usual.config,
    state: variable(env, 'RUSHES_STATE_DIR') ?? usual.state,
  }
}

export const configPath = (folder: string): string => join(folder, 'config.json')

/** A file in the state folder. */
export const JOURNAL_FILE = 'journal.db'
/** A folder in the state folder: the data of `rushes serve` and `rushes admin`. */
export const SERVICE_FOLDER = 'service'
/** A folder in the state folder: the data of the local service of `--local`. */
export const LOCAL_FOLDER = 'local'
