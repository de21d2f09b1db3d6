/** The user's config folder and state folder, and the files in them. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type Folders, platformFolders } from '../../host/file-system.js'
import { type Env, variable } from '../process/io.js'

export function foldersOf(env: Env): Folders {
  const defaults = platformFolders('rushes', env)
  return {
    config: variable(env, 'RUSHES_CONFIG_DIR') ?? defaults.config,
    state: variable(env, 'RUSHES_STATE_DIR') ?? defaults.state,
  }
}

export const configPath = (folder: string): string => join(folder, 'config.json')

/** Subfolder of the state folder with the data of `rushes serve` and `rushes admin`. */
export const SERVICE_FOLDER = 'service'
/** Subfolder of the state folder with the data of the local service of `--local`. */
export const LOCAL_FOLDER = 'local'

/** Subfolder of the config folder with the models that `rushes models add` stored. */
export const addedModelsFolder = (configFolder: string): string => join(configFolder, 'models')

export const addedModelPath = (configFolder: string, model: string): string =>
  join(addedModelsFolder(configFolder), `${fileNameOf(model)}.json`)

/** The kept list of models of the service at an address. */
export const keptListPath = (stateFolder: string, address: string): string =>
  join(stateFolder, 'models', `${fileNameOf(address)}.json`)

/** A name of any length and any characters, for file systems that ignore case too. */
const fileNameOf = (name: string): string => createHash('sha256').update(name).digest('hex')
