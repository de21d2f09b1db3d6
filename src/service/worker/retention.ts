/**
 * `--retain 7d`: removes the files of runs that ended before. The database says so first, and the rows of the runs remain:
 * the URL of a removed output responds with 410. Nothing is removed from a folder or bucket that names another database.
 */
import { text } from 'node:stream/consumers'
import type { Clock, Disarm } from '../../host/clock.js'
import { OWNER_KEY, type Storage } from '../files/contract.js'
import type { Store } from '../store/index.js'
import type { Log } from './log.js'

const SWEEP_EVERY_MS = 3_600_000

export interface RetentionOptions {
  readonly store: Pick<Store, 'databaseId' | 'expireFiles' | 'filesRemoved'>
  readonly storage: Storage
  readonly clock: Clock
  /** Maximum age of files, from the end of their run. If undefined, no file is removed. */
  readonly retainMs: number | undefined
  readonly log: Log
  /** Removes the work folders of workers that have ended. */
  removeWorkFolders(): Promise<void>
  /** Called once if the files belong to another database, so that nothing is removed. */
  onForeign(): void
  onError(error: unknown): void
}

export class Retention {
  readonly #options: RetentionOptions
  #isClosed = false
  #wasForeign = false
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
    const { store, storage, clock, retainMs, log, removeWorkFolders } = this.#options
    await removeWorkFolders()
    // Also without an age: the first service of a folder owns it.
    if (!(await this.#ownsFiles()) || retainMs === undefined) return 0
    let runs = 0
    for (;;) {
      const ids = this.#isClosed ? [] : await store.expireFiles(clock.now() - retainMs)
      for (const id of ids) await storage.files.removeBelow(id)
      if (ids.length === 0) break
      await store.filesRemoved(ids)
      runs += ids.length
    }
    if (runs > 0) log.info({ runs }, 'files of old runs removed')
    return runs
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
    if (isForeign && !this.#wasForeign) onForeign()
    this.#wasForeign = isForeign
    return !isForeign
  }
}
