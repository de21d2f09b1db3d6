/** Where this user's settings and what is remembered lie. */
import { join } from 'node:path'
import { type Folders, platformFolders } from '../../host/platform-folders.js'
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

/** In the state folder. */
export const JOURNAL_FILE = 'journal.db'
/** In the state folder: the data of `rushes serve`, and what `rushes admin` works on. */
export const SERVICE_FOLDER = 'service'
