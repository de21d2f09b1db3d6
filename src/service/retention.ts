/**
 * `--retain 7d`: removes older outputs, and reference images that no unfinished run needs. The rows of the runs stay; the
 * URL of a removed output responds with 410. The age is that of the file, so that files which a crash left without a
 * row are removed too.
 */
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Disarm } from '../host/clock.js'
import type { DataFolders } from './data-folders.js'
import type { Log } from './log.js'

const SWEEP_EVERY_MS = 3_600_000

export interface Retention {
  /** Sweeps now and then every hour, or every `retainMs` when that is shorter. */
  start(): void
  /** One sweep; the number of runs whose outputs it removed, and of images. */
  sweep(): Promise<{ readonly outputs: number; readonly images: number }>
  /** Starts no further sweep, and waits for one in progress. */
  close(): Promise<void>
}

export interface RetentionOptions {
  readonly folders: Pick<DataFolders, 'inputs' | 'outputs'>
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  readonly retainMs: number
  readonly log: Pick<Log, 'info'>
  /** SHA-256 of the images that queued and processing runs use. */
  imagesInUse(): Promise<readonly string[]>
  onError(error: unknown): void
}

export function createRetention(options: RetentionOptions): Retention {
  const { folders, clock, retainMs, log, imagesInUse, onError } = options
  let closed = false
  let disarm: Disarm = () => {}
  let sweeping: Promise<void> = Promise.resolve()

  const isOld = async (path: string): Promise<boolean> => {
    const stats = await lstat(path).catch(() => undefined)
    return stats !== undefined && clock.now() - stats.mtimeMs > retainMs
  }

  /** Removes the old entries of a folder; their number. `spared` is called only when there are any. */
  async function removeOld(
    folder: string,
    spared: () => Promise<ReadonlySet<string>> = async () => new Set(),
  ): Promise<number> {
    const old: string[] = []
    for (const name of await readdir(folder)) if (await isOld(join(folder, name))) old.push(name)
    if (old.length === 0) return 0
    const kept = await spared()
    let removed = 0
    for (const name of old) {
      // Read the age again: a create may have renewed the image since.
      if (closed || kept.has(name) || !(await isOld(join(folder, name)))) continue
      await rm(join(folder, name), { recursive: true, force: true })
      removed++
    }
    return removed
  }

  async function sweep() {
    const outputs = await removeOld(folders.outputs)
    const images = await removeOld(folders.inputs, async () => new Set(await imagesInUse()))
    if (outputs + images > 0) log.info({ outputs, images }, 'old files removed')
    return { outputs, images }
  }

  function keepSweeping(): void {
    sweeping = sweep()
      .catch(onError)
      .then(() => {
        if (!closed) disarm = clock.alarm(Math.min(SWEEP_EVERY_MS, retainMs), keepSweeping)
      })
  }

  return {
    start: keepSweeping,
    sweep,
    async close() {
      closed = true
      disarm()
      await sweeping
    },
  }
}
