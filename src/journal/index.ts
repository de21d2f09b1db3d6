/**
 * The runs created on this machine: intents before they are sent, ids, statuses, outputs, files. Several processes write at
 * the same time, and every write is on the disk, in this one file, when its call returns. (With a write-ahead log the latest
 * rows are in a second file, and were lost with it.)
 *
 * Limits: runs that were created elsewhere with the same key are not in it. It never contains the API key, and of data: URLs
 * only what identifies their content.
 */
import { dirname } from 'node:path'
import { type OnQuarantine, openOrQuarantine, quarantine, wasRemoved } from '../host/corruption.js'
import type { OpenDatabase, Row } from '../host/database.js'
import { processLockIn, runningIn } from '../host/process-lock.js'
import {
  accept,
  type Intent,
  type IntentRow,
  insertIntent,
  markOrphansUnconfirmed,
  markUnconfirmed,
  type Removal,
  removeRuns,
  retract,
  type UnknownOutcome,
} from './creates.js'
import { everyFile, findAtEveryAddress, findByOutput, pathsWithContent } from './find-anywhere.js'
import { identityOf } from './identity.js'
import { FIND, fileOfRow, type JournalFile, type JournalRun, runOfRow } from './journal-run.js'
import { type ListFilter, listRuns } from './list-runs.js'
import { JOURNAL_MIGRATIONS } from './migrations.js'
import {
  findByRequest,
  findCreate,
  type KnownCreate,
  type NamedRequest,
  prepareCreates,
  unprepareCreate,
} from './named-creates.js'
import { createOwnRows, restoreRows, type SavedRows } from './saved-rows.js'
import {
  recordFiles,
  recordNotFound,
  recordQueued,
  recordStatus,
  type StatusUpdate,
} from './status-updates.js'
import { MAX_RUNS, type TypicalDuration, typicalDurationOf } from './typical-duration.js'

export interface Journal {
  /** Records that creates with these request ids were not sent, before the request ids are written elsewhere. */
  prepare(address: string, requestIds: readonly string[]): void
  /** Whether the create was recorded as not sent. From now on it cannot be sent: see `Intent.isPrepared`. */
  unprepare(address: string, requestId: string): boolean
  /** Undefined when nothing is known of a create with this request id: another machine may have sent it. */
  createOf(address: string, requestId: string): KnownCreate | undefined
  /** To be called directly before the bytes are sent. Throws `RepeatedRequest`. */
  intend(intent: Intent): IntentRow
  /** Removes the row of a create that was certainly not accepted; one that was prepared is so again. */
  retract(place: IntentRow): void
  /** The service accepted the run. False when the row is missing. */
  accept(place: IntentRow, id: string, status?: string): boolean
  /** The outcome of the create is unknown. False when the row is missing. */
  markUnconfirmed(place: IntentRow, doubt: UnknownOutcome): boolean
  recordStatus(address: string, update: StatusUpdate): void
  /** A status request got a 404. It may be the wrong key, so the row stays. */
  recordNotFound(address: string, id: string, doubt: UnknownOutcome): void
  /** No process renders these local runs: they are queued, unless they have ended. */
  recordQueued(address: string, ids: readonly string[]): void
  recordFiles(address: string, id: string, files: readonly JournalFile[]): void
  find(address: string, id: string): JournalRun | undefined
  findByKey(key: string): JournalRun | undefined
  /** The newest row with this request id, also one whose outcome is unknown. */
  findByRequest(address: string, requestId: string): NamedRequest | undefined
  filesOf(run: JournalRun): readonly JournalFile[]
  /** The files of all runs, by row: one query, where `filesOf` is one for each run. */
  everyFile(): ReadonlyMap<number, readonly JournalFile[]>
  /** The last row, whatever the clock said. */
  last(address: string): JournalRun | undefined
  /** Oldest first; at every address when none is given. */
  unfinished(address?: string): readonly JournalRun[]
  /** As `unfinished`. */
  unconfirmed(address?: string): readonly JournalRun[]
  /** Newest first. */
  list(filter: ListFilter): readonly JournalRun[]
  /** Succeeded runs of the same request, newest first. */
  reusable(address: string, model: string, meaning: unknown, most: number): readonly JournalRun[]
  /** The newest run with this id of each address, the newest first. */
  findAtEveryAddress(id: string): readonly JournalRun[]
  /** The newest run at the address one of whose output links contains the text. */
  findByOutput(address: string, text: string): JournalRun | undefined
  /** Where files with this content were downloaded to, the newest first. */
  pathsWithContent(sha256: string): readonly string[]
  /** Removes rows, except those that have changed since they were read. Files stay. */
  remove(runs: readonly JournalRun[]): Removal
  typicalDuration(address: string, model: string): TypicalDuration | undefined
  /** The measured durations of the latest runs of a model, in milliseconds. */
  durations(address: string, model: string): readonly number[]
  /** `ok`, or what SQLite finds wrong. */
  integrity(): string
  /** False when its file was removed or quarantined: what is written is lost. */
  isCurrent(): boolean
  /** Whether its file was removed, not quarantined. */
  wasRemoved(): boolean
  /** How long a call waits for the lock of another process. It blocks this process meanwhile. */
  setLockTimeout(ms: number): void
  /** Closes the journal and replaces its file by a new one, unless another process has done so. */
  quarantine(): void
  /** The latest rows that were written or looked up by id here, as they were last seen; they need no file. */
  ownRows(): SavedRows
  /** Writes rows of a lost file that are not in this one. */
  restore(rows: SavedRows): void
  close(): void
}

export interface JournalOptions {
  readonly path: string
  /** Default: `LOCK_TIMEOUT_MS`. */
  readonly lockTimeoutMs?: number
  /** Wall clock, milliseconds. */
  now(): number
  /** The file was corrupt and a new one was created, or a log was found that does not belong to it. */
  readonly onQuarantine: OnQuarantine
}

export const LOCK_TIMEOUT_MS = 10_000

/** Throws `NewerFormat`, or the database's error; every call throws the database's errors. */
export function openJournal({
  path,
  lockTimeoutMs = LOCK_TIMEOUT_MS,
  now,
  onQuarantine,
}: JournalOptions): Journal {
  const file = {
    path,
    migrations: JOURNAL_MIGRATIONS,
    busyTimeoutMs: lockTimeoutMs,
    journalMode: 'TRUNCATE',
  } as const
  const db = openOrQuarantine(file, onQuarantine)
  const one = (row: Row | undefined) => (row === undefined ? undefined : runOfRow(row))
  const own = createOwnRows(db)
  const folder = dirname(path)
  const lock = processLockIn(folder)
  const markOrphans = () => markOrphansUnconfirmed(db, runningIn(folder), now())

  /** Does `work` on the row of an intent. */
  function onRow<Result>({ row }: IntentRow, work: () => Result): Result {
    const result = work()
    own.remember(row)
    return result
  }
  /** Does `work` on the row of a run. */
  function onRun(address: string, id: string, work: () => void): JournalRun | undefined {
    work()
    const run = one(db.get(FIND, address, id))
    if (run !== undefined) own.remember(run.row)
    return run
  }

  return {
    prepare(address, requestIds) {
      prepareCreates(db, address, requestIds, now())
      for (const requestId of requestIds) own.addPrepared({ address, requestId })
    },
    unprepare(address, requestId) {
      own.removePrepared({ address, requestId })
      return unprepareCreate(db, address, requestId)
    },
    createOf(address, requestId) {
      markOrphans()
      return findCreate(db, address, requestId)
    },
    intend(intent) {
      const place = insertIntent(db, intent, lock.id, now())
      if (place.prepared !== undefined) own.removePrepared(place.prepared)
      own.remember(place.row)
      return place
    },
    retract(place) {
      onRow(place, () => retract(db, place, now()))
      if (place.prepared !== undefined) own.addPrepared(place.prepared)
    },
    accept: (place, id, status = 'accepted') => onRow(place, () => accept(db, place, id, status)),
    markUnconfirmed: (place, doubted) => onRow(place, () => markUnconfirmed(db, place, doubted)),
    recordStatus: (address, update) =>
      void onRun(address, update.state.id, () =>
        // One commit for status and links.
        db.transaction(() => recordStatus(db, address, update, now())),
      ),
    recordQueued: (address, ids) => recordQueued(db, address, ids),
    recordNotFound: (address, id, doubted) =>
      void onRun(address, id, () => recordNotFound(db, address, id, doubted)),
    recordFiles: (address, id, files) =>
      void onRun(address, id, () => recordFiles(db, address, id, files, now())),
    find: (address, id) => onRun(address, id, () => {}),
    findByKey(key) {
      markOrphans()
      return one(db.get('SELECT * FROM runs WHERE key = ?', key))
    },
    findByRequest(address, requestId) {
      markOrphans()
      return findByRequest(db, address, requestId)
    },
    filesOf: ({ row }) => db.all('SELECT * FROM files WHERE row = ? ORDER BY file', row).map(fileOfRow),
    everyFile: () => everyFile(db),
    last(address) {
      markOrphans()
      return one(db.get('SELECT * FROM runs WHERE address = ? ORDER BY row DESC LIMIT 1', address))
    },
    unfinished: (address) =>
      db
        .all(
          `SELECT * FROM runs INDEXED BY runs_going WHERE phase = 'going' AND address = coalesce(?, address)
           ORDER BY row`,
          address ?? null,
        )
        .map(runOfRow),
    unconfirmed(address) {
      markOrphans()
      const all = db
        .all(`SELECT * FROM runs INDEXED BY runs_unconfirmed WHERE phase = 'unconfirmed' ORDER BY row`)
        .map(runOfRow)
      return address === undefined ? all : all.filter((run) => run.address === address)
    },
    list(filter) {
      markOrphans()
      return listRuns(db, filter)
    },
    reusable: (address, model, meaning, most) =>
      db
        .all(
          `SELECT * FROM runs WHERE phase = 'succeeded' AND identity = ? AND address = ?
           ORDER BY row DESC LIMIT ?`,
          identityOf(model, meaning),
          address,
          most,
        )
        .map(runOfRow),
    findAtEveryAddress: (id) => findAtEveryAddress(db, id),
    findByOutput: (address, text) => findByOutput(db, address, text),
    pathsWithContent: (sha256) => pathsWithContent(db, sha256),
    remove: (runs) => removeRuns(db, runs),
    typicalDuration: (address, model) => typicalDurationOf(durationsOf(db, address, model)),
    durations: (address, model) => durationsOf(db, address, model),
    integrity: () =>
      db
        .all('PRAGMA integrity_check')
        .map(({ integrity_check }) => String(integrity_check))
        .join('; '),
    isCurrent: () => db.isCurrent(),
    wasRemoved: () => wasRemoved(path, db.inode),
    setLockTimeout: (ms) => void db.get(`PRAGMA busy_timeout = ${ms}`),
    quarantine() {
      db.close()
      quarantine(file, db.inode, onQuarantine)
    },
    ownRows: own.saved,
    restore(rows) {
      for (const row of restoreRows(db, rows, () => lock.id, now())) own.remember(row)
      for (const create of rows.prepared) own.addPrepared(create)
    },
    close() {
      db.close()
      lock.end(own.saved().runs.some(({ run }) => run.phase === 'sending'))
    },
  }
}

const durationsOf = (db: OpenDatabase, address: string, model: string): readonly number[] =>
  db
    .all(
      'SELECT took_ms FROM runs WHERE took_ms IS NOT NULL AND address = ? AND model = ? ORDER BY row DESC LIMIT ?',
      address,
      model,
      MAX_RUNS,
    )
    .map(({ took_ms }) => Number(took_ms))

export type { Intent, IntentRow, UnknownOutcome } from './creates.js'
export type { JournalFile, JournalRun } from './journal-run.js'
export type { ListFilter } from './list-runs.js'
export { type KnownCreate, type NamedRequest, RepeatedRequest } from './named-creates.js'
export type { SavedRows } from './saved-rows.js'
export type { StatusUpdate } from './status-updates.js'
export type { TypicalDuration } from './typical-duration.js'
