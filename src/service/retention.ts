/**
 * `--retain 7d`: outputs older than that are removed, and reference images that no unfinished run needs. The rows of
 * the runs stay; an output's address then answers 410. The files themselves say how old they are, so that what a
 * crash left behind without a row goes too.
 */
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Disarm } from '../host/clock.js'
import type { DataFolders } from './data-folders.js'
import type { Log } from './log.js'

const SWEEP_EVERY_MS = 3_600_000

export interface Retention {
  /** Sweeps at once, and then every hour, or more often where less is retained. */
  start(): void
  /** One sweep; how many outputs (of runs) and images it removed. */
  sweep(): Promise<{ readonly outputs: number; readonly images: number }>
  /** Begins no further sweep; one that is under way comes to its end. */
  close(): Promise<void>
}

export interface RetentionOptions {
  readonly folders: Pick<DataFolders, 'inputs' | 'outputs'>
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  readonly retainMs: number
  readonly log: Pick<Log, 'info'>
  /** SHA-256 of the images that queued and processing runs name. */
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

  /** Removes what is old in a folder; how many that were. `spared` is asked only when there is something. */
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
      // Looked at once more: a create may just have found the image here and made it young again.
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
