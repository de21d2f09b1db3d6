/**
 * `--retain 7d`: removes the files of runs that ended before. The database says so first, and the rows of the runs remain:
 * the URL of a removed output responds with 410. Nothing is removed from a folder or bucket that names another database. Also
 * removes the work folders of workers that have ended.
 */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Clock, Disarm } from '../../host/clock.js'
import { FolderNotRemoved, FolderReplaced, removeFolder } from '../../host/own-folder.js'
import { errorCode } from '../../host/system-error.js'
import { OWNER_KEY, type Storage } from '../files/contract.js'
import { isWorkerId } from '../rules/secrets.js'
import type { Store } from '../store/index.js'
import type { ExpiredRun } from '../store/runs.js'

const SWEEP_EVERY_MS = 3_600_000

export interface RetentionOptions {
  readonly store: Pick<Store, 'databaseId' | 'expireFiles' | 'filesRemoved' | 'findOwners'>
  readonly storage: Storage
  readonly clock: Clock
  /** Maximum age of files, from the end of their run. If undefined, no file is removed. */
  readonly retainMs: number | undefined
  /** The folders in which workers render, as `<worker>/<run>`. */
  readonly work: string
  /** Called if the files belong to another database, so that nothing is removed. */
  onForeign(): void
  onError(error: unknown): void
}

export class Retention {
  readonly #options: RetentionOptions
  #isClosed = false
  #disarm: Disarm = () => {}
  #sweeping: Promise<unknown> = Promise.resolve()

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** Sweeps at once, then every hour, or every `retainMs` if that is shorter. */
  start(): void {
    const { clock, retainMs = Number.POSITIVE_INFINITY, onError } = this.#options
    this.#sweeping = this.sweep()
      .catch(onError)
      .finally(() => {
        const everyMs = Math.min(SWEEP_EVERY_MS, retainMs)
        if (!this.#isClosed) this.#disarm = clock.alarm(everyMs, () => this.start())
      })
  }

  /** Returns the number of runs whose files it removed. */
  async sweep(): Promise<number> {
    const { store, clock, retainMs } = this.#options
    await removeAbandonedFolders(this.#options)
    // Also without an age: the first service of a folder owns it.
    if (!(await this.#ownsFiles()) || retainMs === undefined) return 0
    let runs = 0
    const beforeMs = clock.now() - retainMs
    // Behind those that cannot be removed: otherwise they would keep all later ones.
    const nextAfter = async (last?: ExpiredRun) =>
      this.#isClosed ? [] : await store.expireFiles(beforeMs, last)
    for (let expired = await nextAfter(); expired.length > 0; expired = await nextAfter(expired.at(-1))) {
      const removed: string[] = []
      for (const { id } of expired) if (await this.#removeFiles(id)) removed.push(id)
      await store.filesRemoved(removed)
      runs += removed.length
    }
    return runs
  }

  /** Returns false if the folder of the run cannot be removed: the next sweep tries again. */
  async #removeFiles(id: string): Promise<boolean> {
    const { storage, onError } = this.#options
    try {
      await storage.files.removeBelow(id)
      return true
    } catch (error) {
      if (!(error instanceof FolderReplaced || error instanceof FolderNotRemoved)) throw error
      onError(error)
      return false
    }
  }

  /** Waits for a sweep in progress, and starts no other. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#disarm()
    await this.#sweeping
  }

  /** A storage without a name has no other owner, or its operator has made the file empty. */
  async #ownsFiles(): Promise<boolean> {
    const { store, storage, onForeign } = this.#options
    const id = await store.databaseId()
    const file = await storage.files.find(OWNER_KEY)
    const owner = file && (await text(await file.read())).trim()
    if (!owner) {
      if (file !== undefined) await storage.files.remove(OWNER_KEY)
      await storage.files.put(OWNER_KEY, { bytes: Buffer.from(`${id}\n`) })
    }
    const isForeign = Boolean(owner) && owner !== id
    if (isForeign) onForeign()
    return !isForeign
  }
}

/** Minimum age of an abandoned folder. A newer folder may belong to a service that uses another database. */
const ABANDONED_AFTER_MS = 3_600_000

/**
 * Removes the folders of workers without runs, one hour after the last change in the folder. Removes only folders with the name
 * of a worker, and follows no links: a data folder that the user chose may have other folders in it.
 */
async function removeAbandonedFolders({ work, store, clock, onError }: RetentionOptions): Promise<void> {
  const parent = await lstat(work).catch(() => undefined)
  if (!parent?.isDirectory()) return
  const entries = await readdir(work, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory() && isWorkerId(entry.name))
  if (names.length === 0) return
  const owners = new Set(await store.findOwners())
  for (const { name } of names.filter((each) => !owners.has(each.name))) {
    const path = join(work, name)
    try {
      if (clock.now() - (await lstat(path)).mtimeMs > ABANDONED_AFTER_MS) await removeFolder(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') onError(error)
    }
  }
}
