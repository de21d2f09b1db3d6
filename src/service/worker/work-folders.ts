/** The folders in which workers render: `<worker>/<run>`. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { errorCode } from '../../host/system-error.js'
import type { Store } from '../store/index.js'

/** Minimum age of an abandoned folder. A newer folder may belong to a service that uses another database. */
const ABANDONED_AFTER_MS = 3_600_000

interface WorkFolders {
  readonly work: string
  readonly store: Pick<Store, 'findOwners'>
  readonly clock: Clock
  onError(error: unknown): void
}

/** Removes the folders of workers without runs, one hour after the last change in the folder. */
export async function removeAbandonedFolders({ work, store, clock, onError }: WorkFolders): Promise<void> {
  const entries = await readdir(work, { withFileTypes: true }).catch(() => [])
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  if (names.length === 0) return
  const owners = new Set(await store.findOwners())
  for (const name of names.filter((each) => !owners.has(each))) {
    const path = join(work, name)
    try {
      if (clock.now() - (await changedAtMs(path)) > ABANDONED_AFTER_MS) await removeFolder(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') onError(error)
    }
  }
}

async function changedAtMs(folder: string): Promise<number> {
  const paths = [folder, ...(await readdir(folder)).map((name) => join(folder, name))]
  const stats = await Promise.all(paths.map((path) => lstat(path)))
  return Math.max(...stats.map(({ mtimeMs }) => mtimeMs))
}
