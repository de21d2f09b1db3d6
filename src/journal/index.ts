/**
 * The runs created on this machine: intents before they are sent, ids, statuses, outputs, files. Several processes
 * write at the same time, and every write is on the disk, in this one file, when its call returns. (With a write-ahead
 * log, the latest rows would be in a second file and could be lost with it.)
 *
 * Limits: it does not contain runs that were created elsewhere with the same key. It never contains the API key, and
 * for data: URLs only a summary that identifies their content.
 */
import { dirname } from 'node:path'
import { type OnQuarantine, openOrQuarantine, quarantine, wasRemoved } from '../host/corruption.js'
import type { OpenDatabase, Row } from '../host/database.js'
import { processLockIn, runningIn } from '../host/process-lock.js'
import {
  accept,
  findByRequest,
  findCreate,
  type Intent,
  type IntentRow,
  insertIntent,
  type KnownCreate,
  markOrphansUnconfirmed,
  markUnconfirmed,
  type NamedRequest,
  prepareCreates,
  type Removal,
  removeRuns,
  retract,
  type UnknownOutcome,
  unprepareCreate,
} from './creates.js'
import {
  FIND,
  fileOfRow,
  JOURNAL_MIGRATIONS,
  type JournalFile,
  type JournalRun,
  runOfRow,
  sortByOutput,
} from './journal-run.js'
import {
  everyFile,
  findAtEveryAddress,
  type ListFilter,
  listRuns,
  recordFiles,
  recordNotFound,
  recordQueued,
  recordStatus,
  type StatusUpdate,
} from './queries.js'
import { createOwnRows, restoreRows, type SavedRows } from './saved-rows.js'
import { type Spend, type SpendGrouping, sumSpend } from './spend.js'

export interface Journal {
  /** Records that creates with these request ids were not sent, before the request ids are written elsewhere. */
  prepare(address: string, requestIds: readonly string[]): void
  /**
   * Removes the record that the create was not sent, so that it can no longer be sent: see `Intent.isPrepared`. Returns
   * false if the record does not exist.
   */
  unprepare(address: string, requestId: string): boolean
  /** Returns undefined if the journal does not know a create with this request id: another machine may have sent it. */
  createOf(address: string, requestId: string): KnownCreate | undefined
  /** Records a create as sending. Call it directly before the bytes are sent. Throws `RepeatedRequest`. */
  intend(intent: Intent): IntentRow
  /** Removes the row of a create that was definitely not accepted. A prepared create is recorded as prepared again. */
  retract(intentRow: IntentRow): void
  /** Records that the service accepted the run. Returns false if the row is missing. */
  accept(intentRow: IntentRow, id: string, status?: string, seed?: number | bigint): boolean
  /** Records that the outcome of the create is unknown. Returns false if the row is missing. */
  markUnconfirmed(intentRow: IntentRow, doubt: UnknownOutcome): boolean
  recordStatus(address: string, update: StatusUpdate): void
  /** Records that a status request got a 404. It may be the wrong key, so the row is kept. */
  recordNotFound(address: string, id: string, doubt: UnknownOutcome): void
  /** Marks local runs as queued, unless they have ended: no process is rendering them. */
  recordQueued(address: string, ids: readonly string[]): void
  recordFiles(address: string, id: string, files: readonly JournalFile[]): void
  find(address: string, id: string): JournalRun | undefined
  findByKey(key: string): JournalRun | undefined
  /** The newest row with this request id, even if its outcome is unknown. */
  findByRequest(address: string, requestId: string): NamedRequest | undefined
  filesOf(run: JournalRun): readonly JournalFile[]
  /** Returns the files of all runs by row, in one query; `filesOf` needs one query per run. */
  everyFile(): ReadonlyMap<number, readonly JournalFile[]>
  /** Returns the last row by number, not by time; of all addresses if none is given. */
  last(address?: string): JournalRun | undefined
  /** Returns running runs, oldest first; at all addresses if none is given. */
  unfinished(address?: string): readonly JournalRun[]
  /** Returns unconfirmed runs, like `unfinished`. */
  unconfirmed(address?: string): readonly JournalRun[]
  /** Returns runs that match the filter, newest first. */
  list(filter: ListFilter): readonly JournalRun[]
  /** Sums the estimates of runs that match the filter; its limit is ignored. */
  spend(filter: ListFilter, by: SpendGrouping): Spend
  /** Returns the newest run with this id at each address, newest first. */
  findAtEveryAddress(id: string): readonly JournalRun[]
  /** Removes rows that have not changed since they were read. Downloaded files are kept. */
  remove(runs: readonly JournalRun[]): Removal
  /** Returns the measured durations of the latest runs of a model, in milliseconds. */
  durations(address: string, model: string): readonly number[]
  /** Returns false if the file was removed or quarantined: writes are lost. */
  isCurrent(): boolean
  /** Returns whether the file was removed, but not quarantined. */
  wasRemoved(): boolean
  /** How long a call waits for the lock of another process. The call blocks this process during this time. */
  setLockTimeout(ms: number): void
  /** Closes the journal and replaces its file with a new one, unless another process has already replaced it. */
  quarantine(): void
  /**
   * Returns the latest rows that this process wrote or found by id. They are in memory, so they are available even if
   * the file is lost.
   */
  ownRows(): SavedRows
  /** Writes the rows of a lost file that are missing in this file. */
  restore(rows: SavedRows): void
  close(): void
}

interface JournalOptions {
  readonly path: string
  /** Default: `LOCK_TIMEOUT_MS`. */
  readonly lockTimeoutMs?: number
  /** Returns the wall-clock time in milliseconds. */
  now(): number
  /** Called when the file was corrupt and a new one was created, or when a log was found that does not belong to it. */
  readonly onQuarantine: OnQuarantine
}

export const LOCK_TIMEOUT_MS = 10_000

/** Opens the journal. Throws `NewerFormat`, or the database's error. Every call throws the database's errors. */
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

  /** Runs `work` on the row of an intent, then saves the row in memory. */
  function onRow<Result>({ row }: IntentRow, work: () => Result): Result {
    const result = work()
    own.remember(row)
    return result
  }
  /** Runs `work` on the row of a run, then saves the row in memory. */
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
      const intentRow = insertIntent(db, intent, lock.id, now())
      if (intentRow.prepared !== undefined) own.removePrepared(intentRow.prepared)
      own.remember(intentRow.row)
      return intentRow
    },
    retract(intentRow) {
      onRow(intentRow, () => retract(db, intentRow, now()))
      if (intentRow.prepared !== undefined) own.addPrepared(intentRow.prepared)
    },
    accept: (intentRow, id, status = 'accepted', seed) =>
      onRow(intentRow, () => accept(db, intentRow, { id, status, seed })),
    markUnconfirmed: (intentRow, doubted) => onRow(intentRow, () => markUnconfirmed(db, intentRow, doubted)),
    recordStatus: (address, update) =>
      void onRun(address, update.state.id, () =>
        // Record status and links in one commit.
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
    filesOf: (run) =>
      sortByOutput(db.all('SELECT * FROM files WHERE row = ? ORDER BY file', run.row).map(fileOfRow), run),
    everyFile: () => everyFile(db),
    last(address) {
      markOrphans()
      return one(
        address === undefined
          ? db.get('SELECT * FROM runs ORDER BY row DESC LIMIT 1')
          : db.get('SELECT * FROM runs WHERE address = ? ORDER BY row DESC LIMIT 1', address),
      )
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
    spend(filter, by) {
      markOrphans()
      return sumSpend(db, filter, by)
    },
    findAtEveryAddress: (id) => findAtEveryAddress(db, id),
    remove: (runs) => removeRuns(db, runs),
    durations: (address, model) => durationsOf(db, address, model),
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

/** Only the latest runs count, because the speed of services changes. */
const MAX_DURATIONS = 25

const durationsOf = (db: OpenDatabase, address: string, model: string): readonly number[] =>
  db
    .all(
      'SELECT took_ms FROM runs WHERE took_ms IS NOT NULL AND address = ? AND model = ? ORDER BY row DESC LIMIT ?',
      address,
      model,
      MAX_DURATIONS,
    )
    .map(({ took_ms }) => Number(took_ms))

export type { Intent, IntentRow, UnknownOutcome } from './creates.js'
export { type KnownCreate, type NamedRequest, RepeatedRequest } from './creates.js'
export type { JournalFile, JournalRun, RunEstimate } from './journal-run.js'
export type { ListFilter, StatusUpdate } from './queries.js'
export type { SavedRows } from './saved-rows.js'
export { SPEND_GROUPINGS, SPEND_OUTCOMES, type SpendGrouping, type SpendSum } from './spend.js'
