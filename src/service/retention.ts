/**
 * `--retain 7d`: removes older outputs, and reference images that no unfinished run needs. The rows of the runs stay; the
 * URL of a removed output responds with 410. The age is that of the file, so that files which a crash left without a
 * row are removed too.
 */
import type { Clock, Disarm } from '../host/clock.js'
import type { FileStore } from './files/contract.js'
import type { Log } from './log.js'

const SWEEP_EVERY_MS = 3_600_000

export interface Retention {
  /** Sweeps now and then every hour, or every `retainMs` when that is shorter. */
  start(): void
  /** One sweep; how many outputs and images it removed. */
  sweep(): Promise<{ readonly outputs: number; readonly images: number }>
  /** Starts no further sweep, and waits for one in progress. */
  close(): Promise<void>
}

export interface RetentionOptions {
  readonly outputs: FileStore
  readonly inputs: FileStore
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  readonly retainMs: number
  readonly log: Pick<Log, 'info'>
  /** SHA-256 of the images that queued and processing runs use. */
  imagesInUse(): Promise<readonly string[]>
  onError(error: unknown): void
}

export function createRetention(options: RetentionOptions): Retention {
  const { clock, retainMs, log, imagesInUse, onError } = options
  let closed = false
  let disarm: Disarm = () => {}
  let sweeping: Promise<void> = Promise.resolve()

  const isOld = async (files: FileStore, key: string): Promise<boolean> => {
    const found = await files.find(key)
    return found !== undefined && clock.now() - found.modifiedAtMs > retainMs
  }

  /** Removes the old files; their number. `spared` is called only when there are any. */
  async function removeOld(
    files: FileStore,
    spared: () => Promise<ReadonlySet<string>> = async () => new Set(),
  ): Promise<number> {
    let kept: ReadonlySet<string> | undefined
    let removed = 0
    for await (const key of files.listOlder(retainMs)) {
      kept ??= await spared()
      // Read the age again: a create may have renewed the image since.
      if (closed || kept.has(key) || !(await isOld(files, key))) continue
      await files.remove(key)
      removed++
    }
    return removed
  }

  async function sweep() {
    const outputs = await removeOld(options.outputs)
    const images = await removeOld(options.inputs, async () => new Set(await imagesInUse()))
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
