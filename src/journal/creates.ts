/**
 * A create in the journal, from the intent to its outcome.
 *
 * Creates with a request id, chosen by the client, are sent and paid once. A batch writes the request id into its lock
 * file before the create is sent. If it is killed between the two, the record in `prepared` shows that nothing was
 * sent.
 */
import { randomBytes } from 'node:crypto'
import { RushesError } from '../errors.js'
import type { OpenDatabase } from '../host/database.js'
import { ownerOf, ownerText, type RunningTest } from '../host/process-lock.js'
import { writeJson } from '../protocol/json.js'
import { identityOf, withoutData } from './identity.js'
import { type JournalRun, type RunEstimate, runOfRow, storedPhase } from './journal-run.js'

export interface Intent {
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  readonly input: unknown
  /**
   * Whether a record that the create was not sent is required. If another process has taken that record, it may send
   * the create instead.
   */
  readonly isPrepared?: boolean
  /** Identifies the input if its text changes between calls, for example with a fresh link to an earlier output. */
  readonly identityInput?: unknown
  /** Name of this create, chosen by the client. Unique per address. */
  readonly requestId?: string | undefined
  /** Undefined if the price is not known. */
  readonly estimate?: RunEstimate | undefined
  readonly labels?: readonly string[]
  /** Name of its row in a manifest, and the absolute path of the manifest. */
  readonly name?: string | undefined
  readonly manifest?: string | undefined
  /** Absolute path of the working folder. */
  readonly folder?: string | undefined
}

/** Reason why the outcome of a create is unknown. */
export interface UnknownOutcome {
  readonly code: string
  readonly message: string
  /** The response, if there was one. */
  readonly answerStatus?: number | undefined
  readonly answer?: string | undefined
}

/**
 * Identifies the row of an intent. The number alone is not enough: a new journal reuses the numbers of a quarantined
 * one.
 */
export interface IntentRow {
  readonly row: number
  /** Name of a row without an id, such as ~3f2a. */
  readonly key: string
  /** Set if the create was prepared: `retract` records it as unsent again. */
  readonly prepared?: NamedCreate | undefined
}

/** What the response to a create says of the run. */
export interface Accepted {
  readonly id: string
  readonly status: string
  /** Seed of the run, which the service chooses if the input has none. */
  readonly seed?: number | bigint | undefined
}

const MAX_ANSWER_CHARACTERS = 65_536

/**
 * Inserts a row in the phase `sending`. `owner`: id of this process's lock. Throws `RepeatedRequest` and `NotPrepared`.
 */
export function insertIntent(db: OpenDatabase, intent: Intent, owner: string, nowMs: number): IntentRow {
  const {
    address,
    profile,
    kind,
    model,
    input,
    identityInput = input,
    requestId,
    estimate,
    labels = [],
  } = intent
  const { name, manifest, folder } = intent
  return db.transaction(() => {
    if (requestId !== undefined && findByRequest(db, address, requestId) !== undefined)
      throw new RepeatedRequest(requestId)
    const wasPrepared = requestId !== undefined && unprepareCreate(db, address, requestId)
    if (intent.isPrepared === true && !wasPrepared) throw new NotPrepared(requestId ?? '')
    const key = freeKey(db)
    const row = db.get(
      `INSERT INTO runs (key, address, profile, kind, model, input, identity, phase, status, pid, started_at, created_at,
         request_id, estimate, currency, labels, row_name, manifest, folder)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'sending', 'sending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row`,
      key,
      address,
      profile,
      kind ?? null,
      model,
      writeJson(withoutData(input)),
      identityOf(model, identityInput),
      process.pid,
      ownerText(owner),
      nowMs,
      requestId ?? null,
      estimate?.millionths ?? null,
      estimate?.currency ?? null,
      labels.length === 0 ? null : JSON.stringify(labels),
      name ?? null,
      manifest ?? null,
      folder ?? null,
    )?.row
    return { row: Number(row), key, prepared: wasPrepared ? { address, requestId } : undefined }
  })
}

/** Returns an unused key that is short enough to type; longer if many are in use. */
export function freeKey(db: OpenDatabase): string {
  for (let digits = 4; ; digits++) {
    const key = `~${randomBytes(digits).toString('hex').slice(0, digits)}`
    if (db.get('SELECT 1 FROM runs WHERE key = ?', key) === undefined) return key
  }
}

/**
 * Removes the row of a create. Also removes an unconfirmed row: another process may have assumed that this process has
 * ended.
 */
export const retract = (db: OpenDatabase, { row, key, prepared }: IntentRow, nowMs: number): void =>
  db.transaction(() => {
    db.run(`DELETE FROM runs WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`, row, key)
    if (prepared !== undefined) prepareCreates(db, prepared.address, [prepared.requestId], nowMs)
  })

/**
 * Records that the service accepted the create, and the seed that the service chose for an input without one. Also
 * updates an unconfirmed row: another process may have assumed that this process has ended. Returns false if the row is
 * missing.
 */
export function accept(db: OpenDatabase, { row, key }: IntentRow, { id, status, seed }: Accepted): boolean {
  const json = seed === undefined ? null : writeJson(seed)
  const { changes } = db.run(
    `UPDATE runs SET id = ?, key = NULL, phase = 'going', status = ?, pid = NULL, started_at = NULL,
       error_code = NULL, error_message = NULL,
       input = CASE WHEN ? IS NOT NULL AND json_valid(input) THEN json_insert(input, '$.seed', json(?)) ELSE input END
     WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`,
    id,
    status,
    json,
    json,
    row,
    key,
  )
  return changes > 0
}

/** Records that the outcome of the create is unknown. Returns false if the row is missing. */
export function markUnconfirmed(
  db: OpenDatabase,
  { row, key }: IntentRow,
  { code, message, answerStatus, answer }: UnknownOutcome,
): boolean {
  const { changes } = db.run(
    `UPDATE runs SET phase = 'unconfirmed', status = 'unconfirmed', pid = NULL, started_at = NULL,
       error_code = ?, error_message = ?, answer_status = ?, answer = ?
     WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`,
    code,
    message,
    answerStatus ?? null,
    answer?.slice(0, MAX_ANSWER_CHARACTERS) ?? null,
    row,
    key,
  )
  return changes > 0
}

/** Marks creates as unconfirmed if their process has ended, because no process will record their outcome. */
export function markOrphansUnconfirmed(db: OpenDatabase, isRunning: RunningTest, nowMs: number): void {
  for (const { row, started_at, created_at } of db.all(
    `SELECT row, started_at, created_at FROM runs INDEXED BY runs_sending WHERE phase = 'sending'`,
  )) {
    if (isRunning(ownerOf(started_at), nowMs - Number(created_at))) continue
    db.run(
      `UPDATE runs SET phase = 'unconfirmed', status = 'unconfirmed', pid = NULL, started_at = NULL,
         error_code = 'submission_unknown', error_message = 'the command ended before the service answered'
       WHERE row = ? AND phase = 'sending'`,
      Number(row),
    )
  }
}

export interface Removal {
  readonly removed: readonly JournalRun[]
  /** Changed rows, as they are now. Rows that another process has removed are in neither list. */
  readonly changed: readonly { readonly before: JournalRun; readonly now: JournalRun }[]
}

/** Removes rows that have not changed since they were read. */
export const removeRuns = (db: OpenDatabase, runs: readonly JournalRun[]): Removal =>
  db.transaction(() => {
    const removed: JournalRun[] = []
    const changed: { before: JournalRun; now: JournalRun }[] = []
    for (const run of runs) {
      const { changes } = db.run(
        'DELETE FROM runs WHERE row = ? AND address = ? AND phase = ? AND id IS ? AND key IS ? AND error_code IS ?',
        run.row,
        run.address,
        storedPhase(run.phase),
        run.id ?? null,
        run.key ?? null,
        run.error?.code ?? null,
      )
      if (changes > 0) removed.push(run)
      else {
        const row = db.get('SELECT * FROM runs WHERE row = ? AND created_at = ?', run.row, run.createdAtMs)
        if (row !== undefined) changed.push({ before: run, now: runOfRow(row) })
      }
    }
    return { removed, changed }
  })

/** A row with a request id, and the hash of the request that it was sent for. */
export interface NamedRequest {
  readonly run: JournalRun
  readonly identity: string
}

export interface NamedCreate {
  readonly address: string
  readonly requestId: string
}

export type KnownCreate =
  /** Prepared, or definitely not accepted. */
  | { readonly state: 'unsent' }
  /** The run is in any phase: `sending` while its process runs, `unconfirmed` after it has ended. */
  | { readonly state: 'sent'; readonly run: JournalRun }

/** The journal already has a row with this request id: sending the create again would pay twice. */
export class RepeatedRequest extends RushesError {
  constructor(
    requestId: string,
    message = `A create with the request id "${requestId}" was sent before. Nothing was sent.`,
    hint = 'Repeat the call with the same request id to get its run.',
  ) {
    super('usage', message, { hint })
  }
}

/** Another process has taken the record of the unsent create, and may have sent it instead. */
class NotPrepared extends RepeatedRequest {
  constructor(requestId: string) {
    super(
      requestId,
      'Another batch has taken over this create. It was not sent here.',
      'Run the same command again when no other batch is running on this manifest.',
    )
  }
}

export function findByRequest(
  db: OpenDatabase,
  address: string,
  requestId: string,
): NamedRequest | undefined {
  const row = db.get(
    'SELECT * FROM runs WHERE address = ? AND request_id = ? ORDER BY row DESC LIMIT 1',
    address,
    requestId,
  )
  return row === undefined ? undefined : { run: runOfRow(row), identity: String(row.identity) }
}

/**
 * Maximum age of a record in `prepared`. A row takes about 100 bytes. A batch that continues later finds the create
 * unconfirmed.
 */
const MAX_AGE_MS = 365 * 24 * 3_600_000

/** Records that the creates were not sent. Does not change creates that were sent. */
export const prepareCreates = (
  db: OpenDatabase,
  address: string,
  requestIds: readonly string[],
  nowMs: number,
): void =>
  db.transaction(() => {
    db.run('DELETE FROM prepared WHERE prepared_at < ?', nowMs - MAX_AGE_MS)
    for (const requestId of requestIds)
      db.run(
        `INSERT OR IGNORE INTO prepared (address, request_id, prepared_at) SELECT ?1, ?2, ?3
         WHERE NOT EXISTS (SELECT 1 FROM runs WHERE address = ?1 AND request_id = ?2)`,
        address,
        requestId,
        nowMs,
      )
  })

/** Removes the record that a create was prepared. Returns whether it existed. */
export const unprepareCreate = (db: OpenDatabase, address: string, requestId: string): boolean =>
  db.run('DELETE FROM prepared WHERE address = ? AND request_id = ?', address, requestId).changes > 0

/** Returns undefined if the journal does not know the create, for example if it was prepared on another machine. */
export function findCreate(db: OpenDatabase, address: string, requestId: string): KnownCreate | undefined {
  const sent = findByRequest(db, address, requestId)
  if (sent !== undefined) return { state: 'sent', run: sent.run }
  const isPrepared =
    db.get('SELECT 1 FROM prepared WHERE address = ? AND request_id = ?', address, requestId) !== undefined
  return isPrepared ? { state: 'unsent' } : undefined
}
