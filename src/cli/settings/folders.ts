/** The user's config folder and state folder, and the files in them. */
import { join } from 'node:path'
import { type Folders, platformFolders } from '../../host/directories.js'
import type { Env } from '../process/io.js'
import { variable } from './table.js'

export function foldersOf(env: Env): Folders {
  const defaults = platformFolders('rushes', env)
  return {
    config: variable(env, 'RUSHES_CONFIG_DIR') ?? defaults.config,
    state: variable(env, 'RUSHES_STATE_DIR') ?? defaults.state,
  }
}

export const configPath = (folder: string): string => join(folder, 'config.json')

/** Name of the journal in the state folder. */
export const JOURNAL_FILE = 'journal.db'
/** Subfolder of the state folder with the data of `rushes serve` and `rushes admin`. */
export const SERVICE_FOLDER = 'service'
/** Subfolder of the state folder with the data of the local service of `--local`. */
export const LOCAL_FOLDER = 'local'
