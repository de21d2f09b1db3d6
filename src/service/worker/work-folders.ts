/** What workers that have ended left in the folder `work`: references of users, and outputs that are not complete. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { errorCode } from '../../host/system-error.js'
import type { Store } from '../store/contract.js'

/** A younger folder may be of a service with another database. */
const ABANDONED_AFTER_MS = 3_600_000

export interface WorkFolders {
  /** `<worker>/<run>` */
  readonly work: string
  readonly store: Pick<Store, 'listWorkers'>
  readonly clock: Pick<Clock, 'now'>
  onError(error: unknown): void
}

/** Removes the folders of workers that the database no longer has and that nothing was put into for an hour. */
export async function removeAbandonedFolders({ work, store, clock, onError }: WorkFolders): Promise<void> {
  // Read first: a worker is entered before it makes its folder.
  const entries = await readdir(work, { withFileTypes: true }).catch(() => [])
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  if (names.length === 0) return
  const alive = new Set((await store.listWorkers()).map(({ id }) => id))
  for (const name of names.filter((each) => !alive.has(each))) {
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
