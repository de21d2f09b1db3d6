/** Opens the data folder. */

import { RushesError } from '../errors.js'
import { describeReason } from '../host/system-error.js'
import { type DataFolders, makeDataFolders } from './data-folders.js'
import { explainDatabaseError } from './store/sqlite/database-errors.js'

/**
 * `open` gets the path of the database, and may use it. Throws `RushesError` (usage) when the folder cannot be used: the user can fix it or
 * choose another.
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
    throw new RushesError('usage', `The data folder ${root} cannot be used: ${describeReason(cause)}`, {
      hint: 'Use another folder (--data), or fix this one.',
      cause,
    })
  }
}
