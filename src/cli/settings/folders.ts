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

/** Most file systems allow 255 bytes, and a file that is being written has a longer name. */
const MAX_FILE_NAME_LENGTH = 200
const HASH_LENGTH = 32

/** Encodes a name for every file system, also one that ignores case. A long name ends with its hash. */
function fileNameOf(name: string): string {
  const encoded = [...new TextEncoder().encode(name)]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      return /[a-z0-9_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
    })
    .join('')
  if (encoded.length <= MAX_FILE_NAME_LENGTH) return encoded
  const hash = createHash('sha256').update(name).digest('hex')
  return `${encoded.slice(0, MAX_FILE_NAME_LENGTH - HASH_LENGTH - 1)}.${hash.slice(0, HASH_LENGTH)}`
}
