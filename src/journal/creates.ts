/** A create in the journal, from the intent to its outcome. */
import { randomBytes } from 'node:crypto'
import type { OpenDatabase } from '../host/database.js'
import { ownerOf, ownerText, type RunningTest } from '../host/process-lock.js'
import { identityOf, withoutData } from './identity.js'
import { type JournalRun, runOfRow } from './journal-run.js'
import {
  findByRequest,
  type NamedCreate,
  NotPrepared,
  prepareCreates,
  RepeatedRequest,
  unprepareCreate,
} from './named-creates.js'

export interface Intent {
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  readonly input: unknown
  /** It must be recorded as not sent. Where another process has taken that record, it may send the create in its place. */
  readonly isPrepared?: boolean
  /** Identifies the input where its text changes from call to call (a fresh link to an earlier output). */
  readonly meaning?: unknown
  /** The client's own name for this create. No second row at the address can have it. */
  readonly requestId?: string | undefined
}

/** Why the outcome of a run is not known. */
export interface UnknownOutcome {
  readonly code: string
  readonly message: string
  /** The response, if there was one. */
  readonly answerStatus?: number | undefined
  readonly answer?: string | undefined
}

/** Identifies the row of an intent. The number alone is not enough: a new journal reuses the numbers of a quarantined one. */
export interface IntentRow {
  readonly row: number
  /** The name of a row without an id, such as ~3f2a. */
  readonly key: string
  /** What `retract` records as unsent again: the create was prepared. */
  readonly prepared?: NamedCreate | undefined
}

const MAX_ANSWER_CHARACTERS = 65_536

/** `owner` is the id of this process's lock. Throws `RepeatedRequest` and `NotPrepared`. */
export function insertIntent(db: OpenDatabase, intent: Intent, owner: string, nowMs: number): IntentRow {
  const { address, profile, kind, model, input, meaning = input, requestId } = intent
  return db.transaction(() => {
    if (requestId !== undefined && findByRequest(db, address, requestId) !== undefined)
      throw new RepeatedRequest(requestId)
    const wasPrepared = requestId !== undefined && unprepareCreate(db, address, requestId)
    if (intent.isPrepared === true && !wasPrepared) throw new NotPrepared(requestId ?? '')
    const key = freeKey(db)
    const row = db.get(
      `INSERT INTO runs (key, address, profile, kind, model, input, identity, phase, status, pid, started_at, created_at,
         request_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'sending', 'sending', ?, ?, ?, ?) RETURNING row`,
      key,
      address,
      profile,
      kind ?? null,
      model,
      JSON.stringify(withoutData(input)),
      identityOf(model, meaning),
      process.pid,
      ownerText(owner),
      nowMs,
      requestId ?? null,
    )?.row
    return { row: Number(row), key, prepared: wasPrepared ? { address, requestId } : undefined }
  })
}

/** Short enough to type; longer when many are in use. */
export function freeKey(db: OpenDatabase): string {
  for (let digits = 4; ; digits++) {
    const key = `~${randomBytes(digits).toString('hex').slice(0, digits)}`
    if (db.get('SELECT 1 FROM runs WHERE key = ?', key) === undefined) return key
  }
}

/** Also an unconfirmed row: another process may have taken this one for dead. */
export const retract = (db: OpenDatabase, { row, key, prepared }: IntentRow, nowMs: number): void =>
  db.transaction(() => {
    db.run(`DELETE FROM runs WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`, row, key)
    if (prepared !== undefined) prepareCreates(db, prepared.address, [prepared.requestId], nowMs)
  })

/** Also for an unconfirmed row: another process may have taken this one for dead. Whether the row exists. */
export function accept(db: OpenDatabase, { row, key }: IntentRow, id: string, status: string): boolean {
  const { changes } = db.run(
    `UPDATE runs SET id = ?, key = NULL, phase = 'going', status = ?, pid = NULL, started_at = NULL,
       error_code = NULL, error_message = NULL WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`,
    id,
    status,
    row,
    key,
  )
  return changes > 0
}

/** Whether the row exists. */
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

/** A create whose process has ended will not learn its outcome. */
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
  /** As they are now. Rows that another process has removed are in neither list. */
  readonly changed: readonly { readonly before: JournalRun; readonly now: JournalRun }[]
}

/** Removes rows, except those that have changed since they were read. */
export const removeRuns = (db: OpenDatabase, runs: readonly JournalRun[]): Removal =>
  db.transaction(() => {
    const removed: JournalRun[] = []
    const changed: { before: JournalRun; now: JournalRun }[] = []
    for (const run of runs) {
      const { changes } = db.run(
        'DELETE FROM runs WHERE row = ? AND address = ? AND phase = ? AND id IS ? AND key IS ? AND error_code IS ?',
        run.row,
        run.address,
        run.phase,
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
