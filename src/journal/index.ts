/**
 * The journal: the runs created on this machine, from the intent of a create to its files, and the only record of what
 * a batch has in flight. Several processes use it at the same time.
 *
 *     sending ──► running ──► succeeded │ failed ──► recorded (in the lock file of the batch)
 *       │  └────► unconfirmed
 *       └───────► (no row)
 *
 * A create that was definitely not accepted has no row: no row says the same, and costs no write. A file is named here
 * before it gets its name on the disk, so that a command that was killed between the two still knows whose file it is.
 *
 * Limits: it does not contain runs that were created elsewhere with the same key. It never contains the API key, and
 * for data: URLs only a summary that identifies their content.
 */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { messageOf, newerState, RushesError, usageError } from '../errors.js'
import { NewerFormat, type OpenDatabase, openOrQuarantine, type Row } from '../host/database.js'
import { isRunning, ProcessLock } from '../host/process-lock.js'
import { describeError } from '../host/system-error.js'
import { identityOf, withoutData } from '../protocol/identity.js'
import { writeJson } from '../protocol/json.js'
import type { DownloadedFile } from '../protocol/media.js'
import { isOutcomeUnknown, OUTCOME_UNKNOWN, type RunState } from '../protocol/run-state.js'
import {
  FIND,
  fileOfRow,
  insertRow,
  JOURNAL_MIGRATIONS,
  type JournalRun,
  type ListFilter,
  listStatement,
  positionsOf,
  type RunEstimate,
  runOfRow,
  sortByOutput,
  storedPhase,
  updateRows,
} from './rows.js'
import { checkDay, type DayLimit, type Spend, type SpendGrouping, sumSpend } from './spend.js'

export const JOURNAL_FILE = 'journal.db'

/**
 * `required`: on the disk before the call returns, else it throws, and the create is not sent. `best effort`: after one
 * warning the command goes on, because the run exists already. It survives `kill -9`; after a power failure the row may
 * be `unconfirmed`.
 */
export type Policy = 'required' | 'best effort'

/** The lock file may be removed, and its id with it: then its path still says that runs are in flight. */
export interface BatchName {
  readonly id: string
  readonly lockPath: string
}

export interface Intent {
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  readonly input: unknown
  /** Names of its media parameters. Undefined: those of a model without a document. */
  readonly media?: readonly string[] | undefined
  /** Hash of model and input, if their text changes between calls, for example with a fresh link to an earlier output. */
  readonly identity?: string | undefined
  /** Name of this create, chosen by the client. Unique per address. */
  readonly requestId?: string | undefined
  /** Undefined if the price is not known. */
  readonly estimate?: RunEstimate | undefined
  /** Checked in the transaction of the intent, so that two processes never pass it together. */
  readonly dayLimit?: DayLimit | undefined
  readonly labels?: readonly string[] | undefined
  /** Working folder of the command. */
  readonly folder?: string | undefined
  /** Absolute path of its output, with placeholders. */
  readonly output?: string | undefined
  /** Name of its row in a manifest, and the absolute path of the manifest. */
  readonly name?: string | undefined
  readonly manifest?: string | undefined
  readonly batch?: BatchName | undefined
  /** Name of its entry in the lock file of the batch. */
  readonly entry?: string | undefined
}

/** Identifies the row of an intent. The number alone is not enough: a new journal reuses the numbers of a damaged one. */
export interface IntentRow {
  readonly row: number
  readonly key: string
}

/** Why the outcome of a create, or the state of a run, is not known. */
export interface UnknownOutcome {
  readonly code: string
  readonly message: string
  readonly answerStatus?: number | undefined
  readonly answer?: string | undefined
}

/** What the response to a create says of the run. */
export interface AcceptedRun {
  readonly id: string
  readonly status?: string | undefined
  /** Seed of the run, which the service chooses if the input has none. */
  readonly seed?: number | bigint | undefined
}

export interface StatusUpdate {
  readonly state: RunState
  /** Time from sending the create to this status, if one process did both. */
  readonly elapsedMs?: number | undefined
}

/** A run that the lock file of a batch has. */
export interface RecordedRun {
  readonly entry: string
  /** Hash of model and input. */
  readonly hash: string
  readonly run: string
  /** Address at which the run was created, if it is known: another may give the same id. */
  readonly service?: string | undefined
}

export interface Removal {
  readonly removed: readonly JournalRun[]
  /** Changed rows, as they are now. Rows that another process has removed are in neither list. */
  readonly changed: readonly { readonly before: JournalRun; readonly now: JournalRun }[]
}

export interface JournalOptions {
  /** The state folder. */
  readonly folder: string
  /** Returns the wall-clock time in milliseconds. */
  now(): number
  warn(message: string): void
}

const LOCK_TIMEOUT_MS = 5_000
const MAX_ANSWER_CHARACTERS = 65_536

export class Journal {
  readonly path: string
  readonly #options: JournalOptions
  readonly #lock: ProcessLock
  #database: OpenDatabase | undefined
  /** Why it cannot be used. */
  #failure: unknown
  #id: string | undefined
  #isWarned = false
  #isClosed = false
  /** Writes with best effort that have failed: done before the next write. */
  #missed: ((db: OpenDatabase) => unknown)[] = []

  /**
   * Opens the journal. A damaged file is renamed, with a warning. Throws `usage` for a newer format. Where it cannot be
   * used otherwise, its reads and required writes throw `usage`.
   */
  constructor(options: JournalOptions) {
    this.path = join(options.folder, JOURNAL_FILE)
    this.#options = options
    this.#lock = new ProcessLock(options.folder)
    this.#open()
  }

  #open(): void {
    const { folder, warn } = this.#options
    const onQuarantine = (to: string) =>
      warn(
        `The journal ${this.path} is damaged. It was renamed to ${to}. A new journal was created; earlier runs are not in it.`,
      )
    try {
      const file = {
        path: this.path,
        migrations: JOURNAL_MIGRATIONS,
        busyTimeoutMs: LOCK_TIMEOUT_MS,
      } as const
      this.#database = openOrQuarantine({ ...file, synchronous: 'NORMAL' }, onQuarantine)
    } catch (error) {
      if (error instanceof NewerFormat) throw newerState(folder, error)
      this.#failure = error
    }
  }

  /** Names this state folder: a lock file that another folder has begun is recognized by it. Throws `usage`. */
  get id(): string {
    this.#id ??= this.#read((db) => String(db.get('SELECT id FROM state_folder')?.id))
    return this.#id
  }

  /** Whether a write has failed and is not done yet: a row may not have its id. */
  get isBehind(): boolean {
    return this.#missed.length > 0
  }

  /** Tries again what has failed: to open it, and to write. Throws `usage` if it still fails. */
  check(): this {
    if (this.#database === undefined) this.#open()
    if (this.#missed.length > 0) this.write('required', () => {})
    if (this.#database === undefined) throw this.#unusable(this.#failure)
    return this
  }

  /** The only way to write. Returns undefined if a write with best effort has failed; `repeats`: it is then done later. */
  write<Result>(
    policy: Policy,
    change: (db: OpenDatabase) => Result,
    { repeats = true } = {},
  ): Result | undefined {
    try {
      const db = this.#database
      if (db === undefined) throw this.#failure
      if (policy === 'required') db.setSynchronous('FULL')
      try {
        const result = db.transaction(() => {
          for (const missed of this.#missed) missed(db)
          return change(db)
        })
        this.#missed = []
        return result
      } finally {
        if (policy === 'required') db.setSynchronous('NORMAL')
      }
    } catch (error) {
      // What the change itself has refused, and not why the journal could not be opened.
      if (error instanceof RushesError && error !== this.#failure) throw error
      const unusable = this.#unusable(error)
      if (policy === 'required') throw unusable.with({ consequence: 'Nothing was sent.' })
      if (repeats) this.#missed.push(change)
      this.#warnOnce(unusable)
      return undefined
    }
  }

  /** Reads for a command that goes on without the journal: undefined, after one warning, if it cannot be read. */
  tryRead<Result>(read: (journal: this) => Result): Result | undefined {
    try {
      return read(this)
    } catch (error) {
      this.#warnOnce(error)
      return undefined
    }
  }

  /**
   * Records a create as sending. Call it directly before the bytes are sent. Throws `usage` for a request id that was
   * sent before, which would pay twice, and beyond the limit per day, which is required to be written.
   */
  intend(policy: Policy, intent: Intent): IntentRow | undefined {
    const { address, profile, kind, model, input, media, requestId, estimate, batch } = intent
    const { dayLimit, labels = [] } = intent
    const add = (db: OpenDatabase): IntentRow => {
      if (requestId !== undefined && findRequest(db, address, requestId) !== undefined)
        throw usageError(
          `A create with the request id "${requestId}" was sent before. Nothing was sent.`,
          'Repeat the call with the same request id to get its run.',
        )
      if (dayLimit !== undefined) {
        if (estimate === undefined)
          throw usageError(`${model} has no price, so maxCostPerDay cannot be checked.`)
        checkDay(db, dayLimit, estimate.millionths, this.#options.now())
      }
      const key = freeKey(db)
      const row = insertRow(db, 'runs', {
        key,
        address,
        profile,
        kind,
        model,
        input: writeJson(withoutData(input, media)),
        identity: intent.identity ?? identityOf(model, input, media),
        phase: 'sending',
        status: 'sending',
        started_at: this.#lock.id,
        created_at: this.#options.now(),
        request_id: requestId,
        estimate: estimate?.millionths,
        currency: estimate?.currency,
        labels: labels.length === 0 ? undefined : JSON.stringify(labels),
        row_name: intent.name,
        manifest: intent.manifest,
        folder: intent.folder,
        output: intent.output,
        batch: batch?.id,
        lock_path: batch?.lockPath,
        entry: intent.entry,
        recorded: batch === undefined ? undefined : 0,
      })
      return { row, key }
    }
    return this.write(dayLimit === undefined ? policy : 'required', add, { repeats: false })
  }

  /**
   * Removes the row of a create that was definitely not accepted. Also an unconfirmed row: another process may have
   * assumed that this process has ended.
   */
  unsent({ row, key }: IntentRow): void {
    this.write('best effort', (db) =>
      db.run(`DELETE FROM runs WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`, row, key),
    )
  }

  /** Records that the service accepted the run, and the seed that it chose for an input without one. */
  accepted({ row, key }: IntentRow, { id, status = 'accepted', seed }: AcceptedRun): void {
    const json = seed === undefined ? null : writeJson(seed)
    this.write('best effort', (db) => {
      db.run(
        `UPDATE runs SET input = json_insert(input, '$.seed', json(?))
         WHERE row = ? AND key = ? AND ? IS NOT NULL AND json_valid(input)`,
        json,
        row,
        key,
        json,
      )
      this.#answer(db, { row, key }, { id, key: null, phase: 'going', status })
    })
  }

  /** Records that the outcome of the create is unknown. Returns the key of its row. */
  markUnconfirmed(intent: IntentRow | undefined, doubt: UnknownOutcome): string | undefined {
    if (intent === undefined) return undefined
    this.write('best effort', (db) =>
      this.#answer(db, intent, { phase: 'unconfirmed', status: 'unconfirmed', ...columnsOf(doubt) }),
    )
    return intent.key
  }

  #answer(db: OpenDatabase, { row, key }: IntentRow, values: Parameters<typeof updateRows>[1]): void {
    updateRows(
      db,
      { started_at: null, error_code: null, error_message: null, ...values },
      `row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`,
      row,
      key,
    )
  }

  /**
   * Records a status. A run that has ended stays so, with the time of its end, but its last failure replaces an earlier one,
   * as when a refund was decided, and success replaces every failure. A run of unknown outcome may go on: it may be adopted.
   * A run that succeeded without links keeps the service's response.
   */
  status(address: string, { state, elapsedMs }: StatusUpdate): void {
    const { id, phase, status, urls, failure, finishedAt, withoutUrls, service } = state
    const nowMs = this.#options.now()
    this.write('best effort', (db) => {
      if (phase === 'running') {
        db.run(
          `UPDATE runs SET phase = 'going', status = ?, finished_at = NULL, elapsed_ms = NULL, error_code = NULL,
             error_message = NULL
           WHERE address = ? AND id = ?
             AND (phase = 'going' AND (status <> ? OR error_code IS NOT NULL) OR error_code = ?)`,
          ...[status, address, id, status, OUTCOME_UNKNOWN],
        )
        return
      }
      const code = isOutcomeUnknown(state) ? OUTCOME_UNKNOWN : 'run_failed'
      db.run(
        `UPDATE runs SET phase = ?, status = ?, error_code = ?, error_message = ?,
           finished_at = iif(phase = ?, finished_at, ?),
           elapsed_ms = iif(phase = ?, elapsed_ms, coalesce(?, max(0, ? - created_at)))
         WHERE address = ? AND id = ? AND phase IN ('going', 'failed')`,
        ...[phase, status, ...(phase === 'failed' ? [code, failure ?? null] : [null, null])],
        ...[phase, finishedAt === undefined ? nowMs : Date.parse(finishedAt)],
        ...[phase, elapsedMs === undefined ? null : Math.round(elapsedMs), nowMs],
        ...[address, id],
      )
      if (withoutUrls !== undefined)
        updateRows(
          db,
          { error_code: 'bad_response', error_message: failure ?? withoutUrls, answer: writeJson(service) },
          `address = ? AND id = ? AND phase = 'succeeded' AND urls IS NULL`,
          ...[address, id],
        )
      if (urls.length > 0) recordLinks(db, address, id, urls)
    })
  }

  /** Records that a status request got a 404. It may be the wrong key, so the row is kept. */
  notFound(address: string, id: string, doubt: UnknownOutcome): void {
    this.write('best effort', (db) =>
      updateRows(db, columnsOf(doubt), `address = ? AND id = ? AND phase = 'going'`, address, id),
    )
  }

  /** Marks local runs as queued, unless they have ended: no process is rendering them. */
  queued(address: string, ids: readonly string[]): void {
    this.write('best effort', (db) => {
      for (const id of ids)
        updateRows(
          db,
          { status: 'queued', error_code: null, error_message: null },
          `address = ? AND id = ? AND phase = 'going' AND status <> 'queued'`,
          ...[address, id],
        )
    })
  }

  /** Records files of a run, by the number of its row if that is known. Call it before they get their names. */
  files(address: string, id: string, files: readonly DownloadedFile[], row?: number): void {
    const written_at = this.#options.now()
    this.write('best effort', (db) => {
      // A service may give one id to two creates.
      const run = db.get(
        'SELECT row FROM runs WHERE address = ? AND id = ? ORDER BY row = ? DESC, row DESC LIMIT 1',
        ...[address, id, row ?? null],
      )
      if (run === undefined) return
      for (const { path, bytes, sha256, url, content_type } of files)
        insertRow(
          db,
          'files',
          { row: Number(run.row), path, bytes, sha256, url, content_type, written_at },
          `ON CONFLICT (row, path) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256,
             url = excluded.url, content_type = excluded.content_type, written_at = excluded.written_at`,
        )
    })
  }

  /**
   * The lock file has these runs. Closes with each the earlier creates of the same entry and input, which it replaces. Those
   * of another input stay: they are paid for, and the row continues with them when it is changed back.
   */
  recorded({ id: batch, lockPath }: BatchName, made: readonly RecordedRun[]): void {
    if (made.length === 0) return
    const isOpen = 'recorded = 0 AND (batch = ? OR lock_path = ?)'
    this.write('best effort', (db) => {
      for (const { entry, hash, run, service = null } of made) {
        // A service may give one id to two creates. The create of a renamed row has its earlier name.
        const own = db.get(
          `SELECT row FROM runs WHERE ${isOpen} AND id = ? AND address = coalesce(?, address)
           ORDER BY entry = ? DESC, row DESC LIMIT 1`,
          ...[batch, lockPath, run, service, entry],
        )
        if (own === undefined) continue
        updateRows(
          db,
          { recorded: 1 },
          `${isOpen} AND (row = ? OR entry = ? AND identity = ? AND row < ?)`,
          ...[batch, lockPath, Number(own.row), entry, hash, Number(own.row)],
        )
      }
    })
  }

  /** The run of this row has ended without a result: no batch takes it over. */
  closed(row: number): void {
    this.write('best effort', (db) => updateRows(db, { recorded: 1 }, 'row = ?', row))
  }

  /** The runs of a batch that its lock file does not have, newest first. */
  inFlight({ id, lockPath }: BatchName): readonly JournalRun[] {
    return this.#runs(
      'SELECT * FROM runs WHERE recorded = 0 AND (batch = ? OR lock_path = ?) ORDER BY row DESC',
      ...[id, lockPath],
    )
  }

  find(address: string, id: string): JournalRun | undefined {
    return this.#run(FIND, address, id)
  }

  findByKey(key: string): JournalRun | undefined {
    this.#markOrphans()
    return this.#run('SELECT * FROM runs WHERE key = ?', key)
  }

  /** The newest row with this request id, even if its outcome is unknown. */
  findByRequest(address: string, requestId: string): JournalRun | undefined {
    this.#markOrphans()
    const row = this.#read((db) => findRequest(db, address, requestId))
    return row && runOfRow(row)
  }

  /** Returns the newest run with this id at each address, newest first. */
  findAtEveryAddress(id: string): readonly JournalRun[] {
    return this.#runs(
      `SELECT * FROM runs WHERE row IN (SELECT max(row) FROM runs WHERE id = ? GROUP BY address)
       ORDER BY row DESC`,
      id,
    )
  }

  /** Returns the ids that begin with the text, newest first. */
  idsFrom(beginning: string): readonly string[] {
    const sql = 'SELECT id FROM runs WHERE instr(id, ?) = 1 GROUP BY id ORDER BY max(row) DESC'
    return this.#read((db) => db.all(sql, beginning)).map(({ id }) => String(id))
  }

  /** Returns the ids directly before and after this one in alphabetical order. */
  idsBeside(id: string): readonly string[] {
    const sql = `SELECT max(id) AS id FROM runs WHERE id < ? UNION ALL SELECT min(id) FROM runs WHERE id > ?`
    return this.#read((db) => db.all(sql, id, id)).flatMap((row) => (row.id === null ? [] : String(row.id)))
  }

  /** Returns the run whose file was written last to this absolute path. */
  findByFile(path: string): JournalRun | undefined {
    return this.#run(
      'SELECT runs.* FROM files JOIN runs ON runs.row = files.row WHERE path = ? ORDER BY written_at DESC, file DESC LIMIT 1',
      path,
    )
  }

  filesOf(run: JournalRun): readonly DownloadedFile[] {
    const rows = this.#read((db) => db.all('SELECT * FROM files WHERE row = ? ORDER BY file', run.row))
    return sortByOutput(rows.map(fileOfRow), run)
  }

  /** Returns the row that has written last to each path. */
  lastWriters(): ReadonlyMap<string, number> {
    const rows = this.#read((db) => db.all('SELECT path, row FROM files ORDER BY written_at, file'))
    return new Map(rows.map(({ path, row }) => [String(path), Number(row)]))
  }

  /** Returns the last row by number, not by time; of all addresses if none is given. */
  last(address?: string): JournalRun | undefined {
    this.#markOrphans()
    return address === undefined
      ? this.#run('SELECT * FROM runs ORDER BY row DESC LIMIT 1')
      : this.#run('SELECT * FROM runs WHERE address = ? ORDER BY row DESC LIMIT 1', address)
  }

  /** Returns running runs, oldest first; at all addresses if none is given. */
  unfinished(address?: string): readonly JournalRun[] {
    return this.#runs(
      `SELECT * FROM runs INDEXED BY runs_going WHERE phase = 'going' AND address = coalesce(?, address) ORDER BY row`,
      address ?? null,
    )
  }

  /** Returns unconfirmed runs, like `unfinished`. */
  unconfirmed(address?: string): readonly JournalRun[] {
    return this.#runs(
      `SELECT * FROM runs INDEXED BY runs_unconfirmed
       WHERE phase = 'unconfirmed' AND address = coalesce(?, address) ORDER BY row`,
      address ?? null,
    )
  }

  /** Returns runs that match the filter, newest first. */
  list(filter: ListFilter): readonly JournalRun[] {
    const { sql, values } = listStatement(filter)
    return this.#runs(sql, ...values)
  }

  /** Sums the estimates of runs that match the filter; its limit is ignored. */
  spend(filter: ListFilter, by: SpendGrouping): Spend {
    this.#markOrphans()
    return this.#read((db) => sumSpend(db, filter, by))
  }

  /** Throws `usage` if creates with this estimate would pass the limit now. */
  checkDay(limit: DayLimit, millionths: number): void {
    this.#read((db) => checkDay(db, limit, millionths, this.#options.now()))
  }

  /** Removes rows that have not changed since they were read. Downloaded files are kept. Throws `usage`. */
  remove(runs: readonly JournalRun[]): Removal {
    return this.write('required', (db) => {
      const removed: JournalRun[] = []
      const changed: { before: JournalRun; now: JournalRun }[] = []
      for (const run of runs) {
        const { changes } = db.run(
          'DELETE FROM runs WHERE row = ? AND address = ? AND phase = ? AND id IS ? AND key IS ? AND error_code IS ?',
          ...[run.row, run.address, storedPhase(run.phase), run.id ?? null, run.key ?? null],
          run.error?.code ?? null,
        )
        const now = db.get('SELECT * FROM runs WHERE row = ? AND created_at = ?', run.row, run.createdAtMs)
        if (changes > 0) removed.push(run)
        else if (now !== undefined) changed.push({ before: run, now: runOfRow(now) })
      }
      return { removed, changed }
    }) as Removal
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#missed.length > 0) this.write('best effort', () => {})
    this.#database?.close()
    this.#lock.end()
  }

  /** Marks creates as unconfirmed if their process has ended, because no process will record their outcome. */
  #markOrphans(): void {
    const sending = this.#read((db) =>
      db.all(`SELECT row, started_at FROM runs INDEXED BY runs_sending WHERE phase = 'sending'`),
    )
    const orphans = sending.filter(({ started_at }) => !isRunning(this.#options.folder, started_at))
    if (orphans.length === 0) return
    this.write('best effort', (db) => {
      for (const { row } of orphans)
        updateRows(
          db,
          {
            ...{ phase: 'unconfirmed', status: 'unconfirmed', started_at: null },
            error_code: 'submission_unknown',
            error_message: 'the command ended before the service answered',
          },
          `row = ? AND phase = 'sending'`,
          Number(row),
        )
    })
  }

  #runs(sql: string, ...values: Parameters<OpenDatabase['all']>[1][]): readonly JournalRun[] {
    this.#markOrphans()
    return this.#read((db) => db.all(sql, ...values)).map(runOfRow)
  }

  #run(sql: string, ...values: string[]): JournalRun | undefined {
    const row = this.#read((db) => db.get(sql, ...values))
    return row && runOfRow(row)
  }

  #read<Result>(read: (db: OpenDatabase) => Result): Result {
    if (this.#database === undefined) throw this.#unusable(this.#failure)
    try {
      return read(this.#database)
    } catch (error) {
      throw this.#unusable(error)
    }
  }

  #unusable(error: unknown): RushesError {
    if (error instanceof RushesError) return error
    return new RushesError('usage', `Cannot use the journal ${describeError(error, this.path)}.`, {
      hint: 'Check that the folder is writable and that the disk has space. To use another folder, set RUSHES_STATE_DIR.',
      cause: error,
    })
  }

  #warnOnce(error: unknown): void {
    if (!this.#isWarned)
      this.#options.warn(
        `${messageOf(error)} The runs of this command will not be remembered. Keep the ids that are printed.`,
      )
    this.#isWarned = true
  }
}

const columnsOf = ({ code, message, answerStatus, answer }: UnknownOutcome) => ({
  error_code: code,
  error_message: message,
  answer_status: answerStatus,
  ...(answer !== undefined && { answer: answer.slice(0, MAX_ANSWER_CHARACTERS) }),
})

const findRequest = (db: OpenDatabase, address: string, requestId: string): Row | undefined =>
  db.get(
    'SELECT * FROM runs WHERE address = ? AND request_id = ? ORDER BY row DESC LIMIT 1',
    address,
    requestId,
  )

/** Returns an unused key that is short enough to type; longer if many are in use. */
function freeKey(db: OpenDatabase): string {
  for (let digits = 4; ; digits++) {
    const key = `~${randomBytes(digits).toString('hex').slice(0, digits)}`
    if (db.get('SELECT 1 FROM runs WHERE key = ?', key) === undefined) return key
  }
}

/** Records the latest links of a run, also for its files: the links are what connects a file with its output. */
function recordLinks(db: OpenDatabase, address: string, id: string, urls: readonly string[]): void {
  const found = db.get(FIND, address, id)
  if (found === undefined || found.urls === JSON.stringify(urls)) return
  const { row, urls: before } = runOfRow(found)
  // A run that succeeded without URLs may get them later.
  updateRows(
    db,
    { urls: JSON.stringify(urls), error_code: null, error_message: null, answer: null },
    'row = ?',
    row,
  )
  const positions = positionsOf(before)
  for (const { file, url } of db.all('SELECT file, url FROM files WHERE row = ?', row)) {
    const fresh = urls[positions.get(String(url)) ?? -1]
    if (fresh !== undefined && fresh !== url)
      db.run('UPDATE files SET url = ? WHERE file = ?', fresh, Number(file))
  }
}

export type { JournalRun, ListFilter, RunEstimate } from './rows.js'
export type { DayLimit } from './spend.js'
export { SPEND_GROUPINGS, SPEND_OUTCOMES, type SpendGrouping, type SpendSum } from './spend.js'
