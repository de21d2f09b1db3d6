/**
 * Removes files that the service no longer needs: always files without a record, which a worker or a create that ended early
 * has left; with `--retain 7d`, also older outputs and reference images. The rows of the runs remain, and the URL of a removed
 * output responds with 410. A record goes before its file, so that no run uses a file that is being removed, and the next
 * sweep finds a file that could not be removed. Nothing is removed from a folder or bucket that does not name this
 * database: it gets the name only if the database knows all files in it, or if its user has made the file empty.
 */
import { text } from 'node:stream/consumers'
import type { Clock, Disarm } from '../host/clock.js'
import { type FileStore, OWNER_KEY, type Storage, StorageUnavailable } from './files/contract.js'
import type { Log } from './log.js'
import { type FileName, type FileRecords, MAX_REMOVED } from './store/contract.js'

const SWEEP_EVERY_MS = 3_600_000
/** Minimum age of a file without a record. A younger one may belong to a create that is still in progress. */
const UNKNOWN_AFTER_MS = 3_600_000
/** Number of failed removals after which a sweep stops. */
const MAX_FAILURES = 10
/** Lists files of any age, also if the clock of the storage is ahead. */
const ANY_AGE_MS = -1e15

export interface Retention {
  /** Sweeps at once, then every hour, or every `retainMs` if that is shorter. */
  start(): void
  /** Runs one sweep. Returns the number of outputs and images that it removed. */
  sweep(): Promise<RemovedFiles>
  /** Waits for a sweep in progress, and starts no other. */
  close(): Promise<void>
}

const KINDS = ['output', 'input'] as const

interface RemovedFiles {
  readonly outputs: number
  readonly images: number
}

export interface RetentionOptions {
  readonly store: FileRecords
  readonly storage: Pick<Storage, 'outputs' | 'inputs' | 'root'>
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  /** Maximum age of files. If undefined, no file is removed for its age. */
  readonly retainMs: number | undefined
  readonly log: Pick<Log, 'info'>
  /** Removes the work folders of workers that have ended. */
  removeWorkFolders(): Promise<void>
  /** Called once if the files belong to another database, so that nothing is removed. */
  onForeign(): void
  onError(error: unknown): void
}

export function createRetention(options: RetentionOptions): Retention {
  const { store, storage, clock, retainMs, log, removeWorkFolders, onForeign, onError } = options
  let closed = false
  let disarm: Disarm = () => {}
  let sweeping: Promise<void> = Promise.resolve()
  let wasForeign = false
  /** Files that could not be removed, which must not end each sweep before the others. */
  let stuck = new Set<string>()

  const filesOf = (kind: FileName['kind']): FileStore =>
    kind === 'output' ? storage.outputs : storage.inputs

  async function ownerOf(): Promise<string | undefined> {
    const file = await storage.root.find(OWNER_KEY)
    return file && (await text(await file.read())).trim()
  }

  /** Whether all files of this age have a record. Others may be those of any program. */
  async function knowsAllFiles(ageMs: number): Promise<boolean> {
    for (const kind of KINDS) {
      let keys: string[] = []
      const isKnown = async () => keys.length === 0 || (await store.findUnknownFiles(kind, keys)).length === 0
      for await (const key of filesOf(kind).listOlder(ageMs)) {
        keys.push(key)
        if (keys.length < MAX_REMOVED) continue
        if (!(await isKnown())) return false
        keys = []
      }
      if (!(await isKnown())) return false
    }
    return true
  }

  /** Returns whether the storage names this database. */
  async function isOwned(): Promise<boolean> {
    const id = await store.databaseId()
    const owner = await ownerOf()
    if (owner === '' || (owner === undefined && (await knowsAllFiles(ANY_AGE_MS))))
      await storage.root.put(OWNER_KEY, { bytes: Buffer.from(`${id}\n`) })
    const isOwner = (await ownerOf()) === id
    // A new file without a record may be that of a create which is not recorded yet: a later sweep decides.
    const isUndecided = !isOwner && owner === undefined && (await knowsAllFiles(UNKNOWN_AFTER_MS))
    const isForeign = !isOwner && !isUndecided
    if (isForeign && !wasForeign) onForeign()
    wasForeign = isForeign
    return isOwner
  }

  const noteError = (error: unknown): false => {
    onError(error)
    return false
  }

  /** Removes files until too many removals have failed. */
  function createRemover() {
    let failures = 0
    const removed = { output: 0, input: 0 }
    return {
      removed,
      hasFailed: () => failures > 0,
      mustStop: () => closed || failures >= MAX_FAILURES,
      async remove(kind: FileName['kind'], key: string): Promise<void> {
        if (this.mustStop() || stuck.has(`${kind}/${key}`)) return
        try {
          await filesOf(kind).remove(key)
          removed[kind]++
        } catch (error) {
          if (!(error instanceof StorageUnavailable)) throw error
          stuck.add(`${kind}/${key}`)
          if (failures++ === 0) onError(error)
        }
      },
    }
  }
  type Remover = ReturnType<typeof createRemover>

  async function removeOld(kind: FileName['kind'], ageMs: number, remover: Remover): Promise<void> {
    let keys: readonly string[]
    do {
      keys = await store.removeOldFiles(kind, clock.now() - ageMs)
      for (const key of keys) await remover.remove(kind, key)
    } while (keys.length === MAX_REMOVED && !remover.mustStop())
  }

  async function removeUnknown(kind: FileName['kind'], remover: Remover): Promise<void> {
    let listed: string[] = []
    const removeListed = async () => {
      const unknown = listed.length === 0 ? [] : await store.findUnknownFiles(kind, listed)
      for (const key of unknown) await remover.remove(kind, key)
      listed = []
    }
    try {
      for await (const key of filesOf(kind).listOlder(UNKNOWN_AFTER_MS)) {
        if (remover.mustStop()) return
        listed.push(key)
        if (listed.length === MAX_REMOVED) await removeListed()
      }
    } finally {
      await removeListed()
    }
  }

  async function sweep(): Promise<RemovedFiles> {
    const remover = createRemover()
    if (await isOwned().catch(noteError))
      for (const kind of KINDS) {
        if (retainMs !== undefined) await removeOld(kind, retainMs, remover)
        await removeUnknown(kind, remover).catch(onError)
      }
    if (!remover.hasFailed() && !closed) stuck = new Set()
    await removeWorkFolders()
    const removed = { outputs: remover.removed.output, images: remover.removed.input }
    if (removed.outputs + removed.images > 0) log.info(removed, 'old files removed')
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
