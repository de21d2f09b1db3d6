/** A create in the journal, from the intent to its outcome. */
import { randomBytes } from 'node:crypto'
import { RushesError } from '../errors.js'
import type { OpenDatabase } from '../host/database.js'
import { isAlive, ownMark } from '../host/processes.js'
import { identityOf, withoutData } from './identity.js'
import { type JournalRun, runOfRow } from './journal-run.js'

export interface Intent {
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  readonly input: unknown
  /** Identifies the input where its text changes from call to call (a fresh link to an earlier output). */
  readonly meaning?: unknown
  /** The client's own name for this create. No second row at the address can have it. */
  readonly requestId?: string | undefined
}

/** A row with a request id, and the hash of the request that it was sent for. */
export interface NamedRequest {
  readonly run: JournalRun
  readonly identity: string
}

/** The journal has a row with this request id already: sending it again would pay twice. */
export class RepeatedRequest extends RushesError {
  constructor(requestId: string) {
    super('usage', `A create with the request id "${requestId}" was sent before. Nothing was sent.`, {
      hint: 'Repeat the call with the same request id to get its run.',
    })
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

/** Why it is not known what became of a run. */
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
}

const MAX_ANSWER_CHARACTERS = 65_536

/** Throws `RepeatedRequest`. */
export function insertIntent(db: OpenDatabase, intent: Intent, nowMs: number): IntentRow {
  const { address, profile, kind, model, input, meaning = input, requestId } = intent
  const { pid, startedAt } = ownMark()
  return db.transaction(() => {
    if (requestId !== undefined && findByRequest(db, address, requestId) !== undefined)
      throw new RepeatedRequest(requestId)
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
      pid,
      startedAt ?? null,
      nowMs,
      requestId ?? null,
    )?.row
    return { row: Number(row), key }
  })
}

/** Short enough to type; longer when many are in use. */
export function freeKey(db: OpenDatabase): string {
  for (let digits = 4; ; digits++) {
    const key = `~${randomBytes(digits).toString('hex').slice(0, digits)}`
    if (db.get('SELECT 1 FROM runs WHERE key = ?', key) === undefined) return key
  }
}

export function retract(db: OpenDatabase, { row, key }: IntentRow): void {
  db.run(`DELETE FROM runs WHERE row = ? AND key = ? AND phase = 'sending'`, row, key)
}

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
export function markOrphansUnconfirmed(db: OpenDatabase): void {
  for (const { row, pid, started_at } of db.all(
    `SELECT row, pid, started_at FROM runs INDEXED BY runs_sending WHERE phase = 'sending'`,
  )) {
    const mark = { pid: Number(pid), startedAt: typeof started_at === 'string' ? started_at : undefined }
    if (isAlive(mark)) continue
    db.run(
      `UPDATE runs SET phase = 'unconfirmed', status = 'unconfirmed', pid = NULL, started_at = NULL,
         error_code = 'submission_unknown', error_message = 'the command ended before the service answered'
       WHERE row = ? AND phase = 'sending'`,
      Number(row),
    )
  }
}

/** Removes rows, except those that have moved on to another phase meanwhile; how many were removed. */
export const removeRuns = (db: OpenDatabase, runs: readonly Pick<JournalRun, 'row' | 'phase'>[]): number =>
  db.transaction(() =>
    runs.reduce(
      (removed, { row, phase }) =>
        removed + db.run('DELETE FROM runs WHERE row = ? AND phase = ?', row, phase).changes,
      0,
    ),
  )
