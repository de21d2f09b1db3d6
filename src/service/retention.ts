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
  readonly storage: Storage
  readonly clock: Clock
  /** Maximum age of files. If undefined, no file is removed for its age. */
  readonly retainMs: number | undefined
  readonly log: Log
  /** Removes the work folders of workers that have ended. */
  removeWorkFolders(): Promise<void>
  /** Called once if the files belong to another database, so that nothing is removed. */
  onForeign(): void
  onError(error: unknown): void
}

interface Sweeper {
  readonly options: RetentionOptions
  isClosed: boolean
  disarm: Disarm
  sweeping: Promise<void>
  wasForeign: boolean
  /** Files that could not be removed, which must not end each sweep before the others. */
  stuck: Set<string>
}

/** The removals of one sweep. */
interface Removals {
  failures: number
  readonly removed: Record<FileName['kind'], number>
}

export function createRetention(options: RetentionOptions): Retention {
  const sweeper: Sweeper = {
    options,
    isClosed: false,
    disarm: () => {},
    sweeping: Promise.resolve(),
    wasForeign: false,
    stuck: new Set(),
  }
  return {
    start: () => keepSweeping(sweeper),
    sweep: () => sweep(sweeper),
    async close() {
      sweeper.isClosed = true
      sweeper.disarm()
      await sweeper.sweeping
    },
  }
}

function keepSweeping(sweeper: Sweeper): void {
  const { clock, retainMs, onError } = sweeper.options
  sweeper.sweeping = sweep(sweeper)
    .then(() => {}, onError)
    .then(() => {
      const everyMs = Math.min(SWEEP_EVERY_MS, retainMs ?? Number.POSITIVE_INFINITY)
      if (!sweeper.isClosed) sweeper.disarm = clock.alarm(everyMs, () => keepSweeping(sweeper))
    })
}

async function sweep(sweeper: Sweeper): Promise<RemovedFiles> {
  const { retainMs, log, removeWorkFolders, onError } = sweeper.options
  const removals: Removals = { failures: 0, removed: { output: 0, input: 0 } }
  const noteError = (error: unknown): false => {
    onError(error)
    return false
  }
  if (await isOwned(sweeper).catch(noteError))
    for (const kind of KINDS) {
      if (retainMs !== undefined) await removeOld(sweeper, removals, kind, retainMs)
      await removeUnknown(sweeper, removals, kind).catch(onError)
    }
  if (removals.failures === 0 && !sweeper.isClosed) sweeper.stuck = new Set()
  await removeWorkFolders()
  const removed = { outputs: removals.removed.output, images: removals.removed.input }
  if (removed.outputs + removed.images > 0) log.info(removed, 'old files removed')
  return removed
}

const filesOf = ({ storage }: RetentionOptions, kind: FileName['kind']): FileStore =>
  kind === 'output' ? storage.outputs : storage.inputs

/** Returns whether the storage names this database. */
async function isOwned(sweeper: Sweeper): Promise<boolean> {
  const { options } = sweeper
  const { store, storage, onForeign } = options
  const id = await store.databaseId()
  const owner = await ownerOf(options)
  if (owner === '' || (owner === undefined && (await knowsAllFiles(options, ANY_AGE_MS))))
    await storage.root.put(OWNER_KEY, { bytes: Buffer.from(`${id}\n`) })
  const isOwner = (await ownerOf(options)) === id
  // A new file without a record may be that of a create which is not recorded yet: a later sweep decides.
  const isUndecided = !isOwner && owner === undefined && (await knowsAllFiles(options, UNKNOWN_AFTER_MS))
  const isForeign = !isOwner && !isUndecided
  if (isForeign && !sweeper.wasForeign) onForeign()
  sweeper.wasForeign = isForeign
  return isOwner
}

async function ownerOf({ storage }: RetentionOptions): Promise<string | undefined> {
  const file = await storage.root.find(OWNER_KEY)
  return file && (await text(await file.read())).trim()
}

/** Whether all files of this age have a record. Others may be those of any program. */
async function knowsAllFiles(options: RetentionOptions, ageMs: number): Promise<boolean> {
  for (const kind of KINDS)
    for await (const unknown of unknownFiles(options, kind, ageMs)) if (unknown.length > 0) return false
  return true
}

/** Finds the files of this age that have no record, in groups. If not all can be listed, finds the others, then throws. */
async function* unknownFiles(
  options: RetentionOptions,
  kind: FileName['kind'],
  ageMs: number,
): AsyncGenerator<readonly string[]> {
  let listed: string[] = []
  let failure: unknown
  try {
    for await (const key of filesOf(options, kind).listOlder(ageMs)) {
      listed.push(key)
      if (listed.length < MAX_REMOVED) continue
      yield await options.store.findUnknownFiles(kind, listed)
      listed = []
    }
  } catch (error) {
    failure = error
  }
  if (listed.length > 0) yield await options.store.findUnknownFiles(kind, listed)
  if (failure !== undefined) throw failure
}

async function removeOld(
  sweeper: Sweeper,
  removals: Removals,
  kind: FileName['kind'],
  ageMs: number,
): Promise<void> {
  const { store, clock } = sweeper.options
  let keys: readonly string[]
  do {
    keys = await store.removeOldFiles(kind, clock.now() - ageMs)
    for (const key of keys) await remove(sweeper, removals, kind, key)
  } while (keys.length === MAX_REMOVED && !mustStop(sweeper, removals))
}

async function removeUnknown(sweeper: Sweeper, removals: Removals, kind: FileName['kind']): Promise<void> {
  for await (const unknown of unknownFiles(sweeper.options, kind, UNKNOWN_AFTER_MS)) {
    for (const key of unknown) await remove(sweeper, removals, kind, key)
    if (mustStop(sweeper, removals)) return
  }
}

const mustStop = ({ isClosed }: Sweeper, { failures }: Removals): boolean =>
  isClosed || failures >= MAX_FAILURES

async function remove(
  sweeper: Sweeper,
  removals: Removals,
  kind: FileName['kind'],
  key: string,
): Promise<void> {
  const { options, stuck } = sweeper
  if (mustStop(sweeper, removals) || stuck.has(`${kind}/${key}`)) return
  try {
    await filesOf(options, kind).remove(key)
    removals.removed[kind]++
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error
    stuck.add(`${kind}/${key}`)
    if (removals.failures++ === 0) options.onError(error)
  }
}
