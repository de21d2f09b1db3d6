/** The private data folder of the service. The service chooses the names of all files in it. */
import { join } from 'node:path'
import { RushesError } from '../errors.js'
import { makeFolders } from '../host/file-system.js'
import { describeReason, isSystemError } from '../host/system-error.js'
import { explainDatabaseError } from './store/sqlite/index.js'

export const DATABASE_NAME = 'service.db'

export interface DataFolders {
  readonly root: string
  readonly database: string
  /** Inputs and outputs of runs, by the ids of the runs. */
  readonly files: string
  /** Renders in progress, as `<worker>/<run>`. */
  readonly work: string
}

async function makeDataFolders(root: string): Promise<DataFolders> {
  const folders = {
    root,
    database: join(root, DATABASE_NAME),
    files: join(root, 'files'),
    work: join(root, 'work'),
  }
  for (const folder of [root, folders.files, folders.work]) makeFolders(folder, 0o700)
  return folders
}

/**
 * Creates the folders and opens the database with `open`. Throws `RushesError` (usage) when one of them cannot be used:
 * the user can fix it or choose another.
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
    const explained = explainDatabaseError(database, cause)
    if (explained !== undefined) throw explained
    const what = isSystemError(cause) ? `data folder ${root}` : 'database'
    throw new RushesError('usage', `The ${what} cannot be used: ${describeReason(cause)}.`, {
      hint: 'Fix it, or use another one (--data or --database; RUSHES_STATE_DIR for --local).',
      cause,
    })
  }
}
