/** The data folder of the service: private, and with file names of the service's own choice. */
import { join } from 'node:path'
import { makeFolders } from '../host/directories.js'

export const DATABASE_NAME = 'service.db'

export interface DataFolders {
  readonly database: string
  /** Images that came as data: URLs, each named by its SHA-256. */
  readonly inputs: string
  /** `<token>/<file>`: complete outputs. */
  readonly outputs: string
  /** `<worker>/<run>`: renders in progress. */
  readonly work: string
}

export async function makeDataFolders(root: string): Promise<DataFolders> {
  const folders = {
    database: join(root, DATABASE_NAME),
    inputs: join(root, 'inputs'),
    outputs: join(root, 'outputs'),
    work: join(root, 'work'),
  }
  for (const folder of [root, folders.inputs, folders.outputs, folders.work]) makeFolders(folder, 0o700)
  return folders
}

/**
 * Where the output of a URL is in the data folder `root`, whether it still exists or not. Undefined for a URL that is not
 * one of an output. Without the service: reading a list of results must not start it.
 */
export function outputPathOf(root: string, url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const [, token = '', name = ''] = /\/outputs\/([\w-]+)\/([\w-][\w.-]*)$/.exec(new URL(url).pathname) ?? []
  return name === '' ? undefined : join(root, 'outputs', token, name)
}
