/** The life of a create in the journal, from the intent to what became of it. */
import { randomBytes } from 'node:crypto'
import type { OpenDatabase } from '../host/database.js'
import { isAlive, ownMark } from '../host/processes.js'
import { identityOf, withoutData } from './identity.js'
import { FIND, runOfRow } from './journal-run.js'

export interface Intent {
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  readonly input: unknown
  /** What the input means, where its text changes from call to call (a fresh link of an earlier output). */
  readonly meaning?: unknown
}

export interface Doubt {
  readonly code: string
  readonly message: string
  /** What came back, if anything did. */
  readonly answerStatus?: number | undefined
  readonly answer?: string | undefined
}

export type Forgotten = 'forgotten' | 'unknown' | 'sending' | 'exists'

/**
 * Where an intent is written. The number alone would not do: a journal that is begun anew, because the file was damaged
 * or removed, gives the same numbers again, to other processes too.
 */
export interface Place {
  readonly row: number
  /** What the row is called as long as it has no id, such as ~3f2a. */
  readonly key: string
}

const MOST_ANSWER_CHARACTERS = 65_536

export function insert(db: OpenDatabase, intent: Intent, nowMs: number): Place {
  const { address, profile, kind, model, input, meaning = input } = intent
  const { pid, startedAt } = ownMark()
  return db.transaction(() => {
    const key = freeKey(db)
    const row = db.get(
      `INSERT INTO runs (key, address, profile, kind, model, input, identity, phase, status, pid, started_at, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'sending', 'sending', ?, ?, ?) RETURNING row`,
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
    )?.row
    return { row: Number(row), key }
  })
}

/** Short enough to be typed; longer when many are in use. */
function freeKey(db: OpenDatabase): string {
  for (let digits = 4; ; digits++) {
    const key = `~${randomBytes(digits).toString('hex').slice(0, digits)}`
    if (db.get('SELECT 1 FROM runs WHERE key = ?', key) === undefined) return key
  }
}

export function retract(db: OpenDatabase, { row, key }: Place): void {
  db.run(`DELETE FROM runs WHERE row = ? AND key = ? AND phase = 'sending'`, row, key)
}

/** Also where the row was already given up: another process may have taken this one for dead. Whether it was there. */
export function accept(db: OpenDatabase, { row, key }: Place, id: string, status: string): boolean {
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

/** Whether the row was there. */
export function doubt(
  db: OpenDatabase,
  { row, key }: Place,
  { code, message, answerStatus, answer }: Doubt,
): boolean {
  const { changes } = db.run(
    `UPDATE runs SET phase = 'unconfirmed', status = 'unconfirmed', pid = NULL, started_at = NULL,
       error_code = ?, error_message = ?, answer_status = ?, answer = ?
     WHERE row = ? AND key = ? AND phase IN ('sending', 'unconfirmed')`,
    code,
    message,
    answerStatus ?? null,
    answer?.slice(0, MOST_ANSWER_CHARACTERS) ?? null,
    row,
    key,
  )
  return changes > 0
}

/** A create whose process is gone will not hear what became of it. */
export function buryTheDead(db: OpenDatabase): void {
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

/** A run that exists is not forgotten: whoever paid for it may still want it. */
export function forget(db: OpenDatabase, name: string, address: string | undefined): Forgotten {
  const found =
    db.get('SELECT * FROM runs WHERE key = ?', name) ??
    (address === undefined ? undefined : db.get(FIND, address, name))
  if (found === undefined) return 'unknown'
  const { row, phase, error } = runOfRow(found)
  if (phase === 'sending') return 'sending'
  if (phase !== 'unconfirmed' && error?.code !== 'run_not_found') return 'exists'
  db.run('DELETE FROM runs WHERE row = ?', row)
  return 'forgotten'
}
