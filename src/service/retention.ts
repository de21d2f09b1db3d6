/**
 * Removes files that the service no longer needs: always files of workers and creates that ended early; with `--retain
 * 7d`, also older outputs and reference images. The rows of the runs remain, and the URL of a removed output responds
 * with 410. The database marks a file before its removal (`FileRecords` in store/contract.ts), so that the next sweep
 * continues a stopped one.
 */
import type { Clock, Disarm } from '../host/clock.js'
import { type FileStore, type Storage, StorageUnavailable } from './files/contract.js'
import type { Log } from './log.js'
import { type FileName, type FileRecords, MAX_MARKED } from './store/contract.js'

const SWEEP_EVERY_MS = 3_600_000
/** Minimum age of an orphaned file. A younger one may belong to a create that is still in progress. */
const ORPHAN_AFTER_MS = 3_600_000
/** Time to keep the records of removed files. No sweep of another node is expected to take longer. */
const FORGET_AFTER_MS = 86_400_000
/** Number of failed removals after which a sweep stops. */
const MAX_FAILURES = 10

export interface Retention {
  /** Sweeps at once, then every hour, or every `retainMs` if that is shorter. */
  start(): void
  /** Runs one sweep. Returns the number of outputs and images that it removed. */
  sweep(): Promise<RemovedFiles>
  /** Waits for a sweep in progress, and starts no other. */
  close(): Promise<void>
}

interface RemovedFiles {
  readonly outputs: number
  readonly images: number
}

export interface RetentionOptions {
  readonly store: FileRecords
  readonly storage: Pick<Storage, 'outputs' | 'inputs'>
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  /** Maximum age of files. If undefined, no file is removed for its age. */
  readonly retainMs: number | undefined
  readonly log: Pick<Log, 'info'>
  /** Removes the work folders of workers that have ended. */
  removeWorkFolders(): Promise<void>
  onError(error: unknown): void
}

export function createRetention(options: RetentionOptions): Retention {
  const { store, storage, clock, retainMs, log, removeWorkFolders, onError } = options
  let closed = false
  let disarm: Disarm = () => {}
  let sweeping: Promise<void> = Promise.resolve()
  /** Last file that a stopped sweep tried to remove. The next sweep continues after it. */
  let stoppedAt: FileName | undefined

  const filesOf = (kind: FileName['kind']): FileStore =>
    kind === 'output' ? storage.outputs : storage.inputs

  async function markOld(kind: FileName['kind'], ageMs: number): Promise<void> {
    const nowMs = clock.now()
    while (!closed && (await store.markOldFiles(kind, nowMs - ageMs, nowMs)) === MAX_MARKED);
    // List the storage too: a system crash can leave a partial file.
    let keys: string[] = []
    const markListed = async () => {
      if (keys.length > 0) await store.markUnknownFiles(kind, keys, nowMs)
      keys = []
    }
    try {
      for await (const key of filesOf(kind).listOlder(ageMs)) {
        if (closed) return
        keys.push(key)
        if (keys.length === MAX_MARKED) await markListed()
      }
    } finally {
      await markListed()
    }
  }

  async function removeMarked(): Promise<RemovedFiles> {
    const removed = { output: 0, input: 0 }
    let failures = 0

    /** Returns false if the sweep must stop: the service closes, or too many removals failed. */
    async function removeAfter(last: FileName | undefined): Promise<boolean> {
      const marked = await store.listMarkedFiles(MAX_MARKED, last)
      for (const file of marked) {
        if (closed) return false
        stoppedAt = file
        try {
          await filesOf(file.kind).remove(file.key)
        } catch (error) {
          if (!(error instanceof StorageUnavailable)) throw error
          if (failures++ === 0) onError(error)
          if (failures === MAX_FAILURES) return false
          continue
        }
        if (await store.recordRemoved(file, clock.now())) removed[file.kind]++
      }
      return marked.length === 0 || (await removeAfter(marked.at(-1)))
    }

    const starts = stoppedAt === undefined ? [undefined] : [stoppedAt, undefined]
    for (const start of starts) {
      if (!(await removeAfter(start))) break
      stoppedAt = undefined
    }
    return { outputs: removed.output, images: removed.input }
  }

  async function sweep(): Promise<RemovedFiles> {
    await store.markOrphans(clock.now() - ORPHAN_AFTER_MS, clock.now())
    if (retainMs !== undefined)
      for (const kind of ['output', 'input'] as const) await markOld(kind, retainMs).catch(onError)
    const removed = await removeMarked()
    await store.forgetRemoved(clock.now() - FORGET_AFTER_MS)
    await removeWorkFolders()
    if (removed.outputs + removed.images > 0) log.info({ ...removed }, 'old files removed')
    return removed
  }

  function keepSweeping(): void {
    sweeping = sweep()
      .then(() => {}, onError)
      .then(() => {
        const everyMs = Math.min(SWEEP_EVERY_MS, retainMs ?? Number.POSITIVE_INFINITY)
        if (!closed) disarm = clock.alarm(everyMs, keepSweeping)
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
