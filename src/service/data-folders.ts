/** The data folder of the service: private; the service chooses the names of its files. */

import { join } from 'node:path'
import { RushesError } from '../errors.js'
import { makeFolders } from '../host/directories.js'
import { describeReason } from '../host/system-error.js'

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

/**
 * Creates the folders, and opens the database with `open`. Throws `RushesError` (usage) when the folder cannot be used: the
 * user can fix it or choose another.
 */
export async function openData<Opened>(
  root: string,
  open: (path: string) => Opened | Promise<Opened>,
): Promise<{ folders: DataFolders; opened: Opened }> {
  let database = root
  try {
    const folders = await makeDataFolders(root)
    database = folders.database
    return { folders, opened: await open(folders.database) }
  } catch (cause) {
    if (cause instanceof RushesError) throw cause
    // Loaded on failure alone: commands that read only the names of the folders do without SQLite.
    const { explainDatabaseError } = await import('./store/sqlite/index.js')
    const explained = explainDatabaseError(database, cause)
    if (explained !== undefined) throw explained
    throw new RushesError('usage', `The data folder ${root} cannot be used: ${describeReason(cause)}`, {
      hint: 'Use another folder (--data), or fix this one.',
      cause,
    })
  }
}
