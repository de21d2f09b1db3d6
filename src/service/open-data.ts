/** Opens the data folder. */

import { RushesError } from '../errors.js'
import { describeReason } from '../host/system-error.js'
import { type DataFolders, makeDataFolders } from './data-folders.js'
import type { Store } from './store/contract.js'
import { openSqliteStore } from './store/sqlite/index.js'

/** Throws `RushesError` (usage) when the folder cannot be used: the user can fix it or choose another. */
export async function openData(root: string): Promise<{ folders: DataFolders; store: Store }> {
  try {
    const folders = await makeDataFolders(root)
    return { folders, store: openSqliteStore(folders.database) }
  } catch (cause) {
    if (cause instanceof RushesError) throw cause
    throw new RushesError('usage', `The data folder ${root} cannot be used: ${describeReason(cause)}`, {
      hint: 'Use another folder (--data), or fix this one.',
      cause,
    })
  }
}
