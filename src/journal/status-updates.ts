/** What status requests and downloads add to a run in the journal. */
import type { OpenDatabase } from '../host/database.js'
import type { RunState } from '../protocol/run-state.js'
import type { UnknownOutcome } from './creates.js'
import { FIND, type JournalFile, runOfRow } from './journal-run.js'

/** What a status request showed. */
export interface StatusUpdate {
  readonly state: RunState
  /** From sending the create to this status, where one process saw both. */
  readonly elapsedMs?: number | undefined
  /** How long the run took, where the previous status request still showed it running. */
  readonly tookMs?: number | undefined
}

/** The first final status stays; later ones only update the links. */
export function recordStatus(
  db: OpenDatabase,
  address: string,
  { state, elapsedMs, tookMs }: StatusUpdate,
  nowMs: number,
): void {
  const { id, phase, status, urls, failure, finishedAt } = state
  if (phase === 'going') {
    db.run(
      `UPDATE runs SET status = ?, error_code = NULL, error_message = NULL
       WHERE address = ? AND id = ? AND phase = 'going' AND (status <> ? OR error_code IS NOT NULL)`,
      status,
      address,
      id,
      status,
    )
    return
  }
  const finishedAtMs = finishedAt === undefined ? nowMs : Date.parse(finishedAt)
  db.run(
    `UPDATE runs SET phase = ?, status = ?, finished_at = ?, elapsed_ms = coalesce(?, ? - created_at), took_ms = ?,
       error_code = ?, error_message = ? WHERE address = ? AND id = ? AND phase = 'going'`,
    phase,
    status,
    finishedAtMs,
    elapsedMs === undefined ? null : Math.round(elapsedMs),
    nowMs,
    tookMs === undefined ? null : Math.round(tookMs),
    phase === 'failed' ? 'run_failed' : null,
    phase === 'failed' ? (failure ?? null) : null,
    address,
    id,
  )
  if (urls.length > 0)
    db.run(
      `UPDATE runs SET urls = ?1 WHERE address = ?2 AND id = ?3 AND urls IS NOT ?1`,
      JSON.stringify(urls),
      address,
      id,
    )
}

/** In one transaction, however many runs there are. */
export const recordQueued = (db: OpenDatabase, address: string, ids: readonly string[]): void =>
  db.transaction(() => {
    for (const id of ids)
      db.run(
        `UPDATE runs SET status = 'queued', error_code = NULL, error_message = NULL
         WHERE address = ? AND id = ? AND phase = 'going' AND status <> 'queued'`,
        address,
        id,
      )
  })

export function recordNotFound(
  db: OpenDatabase,
  address: string,
  id: string,
  { code, message, answerStatus }: UnknownOutcome,
): void {
  db.run(
    `UPDATE runs SET error_code = ?, error_message = ?, answer_status = ?
     WHERE address = ? AND id = ? AND phase = 'going'`,
    code,
    message,
    answerStatus ?? null,
    address,
    id,
  )
}

export function recordFiles(
  db: OpenDatabase,
  address: string,
  id: string,
  files: readonly JournalFile[],
  nowMs: number,
): void {
  const found = db.get(FIND, address, id)
  if (found === undefined) return
  const { row } = runOfRow(found)
  db.transaction(() => {
    for (const file of files) recordFile(db, row, file, nowMs)
  })
}

function recordFile(db: OpenDatabase, row: number, file: JournalFile, nowMs: number): void {
  db.run(
    `INSERT INTO files (row, path, bytes, sha256, url, content_type, written_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (row, path) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256, url = excluded.url,
       content_type = excluded.content_type, written_at = excluded.written_at`,
    row,
    file.path,
    file.bytes,
    file.sha256,
    file.url,
    file.content_type,
    nowMs,
  )
}
