/** Finds, lists and updates the runs of the journal after their create. */
import { sep } from 'node:path'
import type { OpenDatabase, SqlValue } from '../host/database.js'
import { writeJson } from '../protocol/json.js'
import { addTo } from '../protocol/lists.js'
import { isOutcomeUnknown, OUTCOME_UNKNOWN, type RunState } from '../protocol/run-state.js'
import type { UnknownOutcome } from './creates.js'
import { FIND, fileOfRow, type JournalFile, type JournalRun, positionsOf, runOfRow } from './journal-run.js'

/**
 * Lists all addresses by jumping from one address to the next in the index. Fast, because a machine has many runs but
 * few addresses.
 */
const ADDRESSES = `
  WITH RECURSIVE places (address) AS (
    SELECT min(address) FROM runs
    UNION ALL
    SELECT (SELECT min(address) FROM runs WHERE runs.address > places.address)
    FROM places WHERE places.address IS NOT NULL
  )
  SELECT address FROM places WHERE address IS NOT NULL`

/** Returns the newest run with this id at each address, newest first. */
export const findAtEveryAddress = (db: OpenDatabase, id: string): readonly JournalRun[] =>
  db
    .all(ADDRESSES)
    // Use `get`, not `all`: `get` uses the same statement, and libsql would then return rows of earlier values from
    // `all`.
    .flatMap(({ address }) => {
      const row = db.get(FIND, String(address), id)
      return row === undefined ? [] : [runOfRow(row)]
    })
    .sort((one, other) => other.row - one.row)

/** Returns the files of all runs by row, in the order of their downloads. */
export function everyFile(db: OpenDatabase): ReadonlyMap<number, readonly JournalFile[]> {
  const byRow = new Map<number, JournalFile[]>()
  for (const row of db.all('SELECT * FROM files ORDER BY file')) addTo(byRow, Number(row.row), fileOfRow(row))
  return byRow
}

export interface ListFilter {
  readonly address?: string | undefined
  /** Status as it is shown; not case-sensitive. */
  readonly status?: string | undefined
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** The run must have all of them. */
  readonly labels?: readonly string[] | undefined
  /** Absolute path of the manifest of its batch. */
  readonly manifest?: string | undefined
  /** Absolute path: the run was created in this folder or below it, or its manifest or a file is there. */
  readonly folder?: string | undefined
  /** Created at or after `sinceMs` and before `beforeMs`; milliseconds since the epoch. */
  readonly sinceMs?: number | undefined
  readonly beforeMs?: number | undefined
  /** Maximum number of runs. Undefined: no limit. */
  readonly limit?: number | undefined
}

const CONDITIONS = {
  address: 'address = ?',
  status: 'status = ? COLLATE NOCASE',
  kind: 'kind = ?',
  model: 'model = ?',
  manifest: 'manifest = ?',
  sinceMs: 'created_at >= ?',
  beforeMs: 'created_at < ?',
} as const satisfies Record<Exclude<keyof ListFilter, 'limit' | 'labels' | 'folder'>, string>

const HAS_LABEL = 'EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)'

/** The first value is the separator of paths, the others are the folder with a separator at its end. */
const IS_IN_FOLDER = `(instr(folder || ?, ?) = 1 OR instr(manifest, ?) = 1
  OR EXISTS (SELECT 1 FROM files WHERE files.row = runs.row AND instr(files.path, ?) = 1))`

/** Returns the condition of a filter, without its limit: empty, or `WHERE …` with a space at its end. */
export function whereOf(filter: ListFilter) {
  const names = (Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]).filter(
    (name) => filter[name] !== undefined,
  )
  const { labels = [], folder } = filter
  const conditions = [
    ...names.map((name) => CONDITIONS[name]),
    ...labels.map(() => HAS_LABEL),
    ...(folder === undefined ? [] : [IS_IN_FOLDER]),
  ]
  const within = folder?.endsWith(sep) ? folder : `${folder}${sep}`
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `
  const values: readonly SqlValue[] = [
    ...names.map((name) => filter[name] ?? null),
    ...labels,
    ...(folder === undefined ? [] : [sep, within, within, within]),
  ]
  return { where, values }
}

/**
 * Builds the statement of a list. Every list reads the index by time, so that no sorting is needed; a filter that
 * matches none of 100,000 runs takes 40 ms. An index for each filter would save this time, but each write would take 50
 * % longer. Exported so that a test can check the query plan.
 */
export function listStatement(filter: ListFilter) {
  const { where, values } = whereOf(filter)
  const sql = `SELECT * FROM runs INDEXED BY runs_by_time ${where}ORDER BY created_at DESC, row DESC LIMIT ?`
  return { sql, values: [...values, filter.limit ?? -1] }
}

/** Lists runs, newest first. */
export function listRuns(db: OpenDatabase, filter: ListFilter): readonly JournalRun[] {
  const { sql, values } = listStatement(filter)
  return db.all(sql, ...values).map(runOfRow)
}

/** State of a run from a status request. */
export interface StatusUpdate {
  readonly state: RunState
  /** Time from sending the create to this status, if one process did both. */
  readonly elapsedMs?: number | undefined
  /** Duration of the run, if the previous status request showed it running. */
  readonly tookMs?: number | undefined
}

/**
 * Records a status. The first final status is kept; later ones only update the links. A run of unknown outcome is an
 * exception: it may be adopted and go on, so every later status replaces it, and success replaces every failure. A run
 * that succeeded without links keeps the service's response.
 */
export function recordStatus(
  db: OpenDatabase,
  address: string,
  { state, elapsedMs, tookMs }: StatusUpdate,
  nowMs: number,
): void {
  const { id, phase, status, urls, failure, finishedAt, withoutUrls, service } = state
  if (phase === 'running') {
    db.run(
      `UPDATE runs SET phase = 'going', status = ?, finished_at = NULL, elapsed_ms = NULL, error_code = NULL,
         error_message = NULL
       WHERE address = ? AND id = ?
         AND (phase = 'going' AND (status <> ? OR error_code IS NOT NULL) OR error_code = ?)`,
      status,
      address,
      id,
      status,
      OUTCOME_UNKNOWN,
    )
    return
  }
  const finishedAtMs = finishedAt === undefined ? nowMs : Date.parse(finishedAt)
  db.run(
    `UPDATE runs SET phase = ?, status = ?, finished_at = ?, elapsed_ms = coalesce(?, ? - created_at), took_ms = ?,
       error_code = ?, error_message = ?
     WHERE address = ? AND id = ? AND (phase = 'going' OR phase = 'failed' AND ? = 'succeeded')`,
    phase,
    status,
    finishedAtMs,
    elapsedMs === undefined ? null : Math.round(elapsedMs),
    nowMs,
    tookMs === undefined ? null : Math.round(tookMs),
    phase === 'failed' ? (isOutcomeUnknown(state) ? OUTCOME_UNKNOWN : 'run_failed') : null,
    phase === 'failed' ? (failure ?? null) : null,
    address,
    id,
    phase,
  )
  if (withoutUrls !== undefined)
    db.run(
      `UPDATE runs SET error_code = 'bad_response', error_message = ?, answer = ?
       WHERE address = ? AND id = ? AND phase = 'succeeded' AND urls IS NULL`,
      failure ?? withoutUrls,
      writeJson(service),
      address,
      id,
    )
  if (urls.length > 0) recordLinks(db, address, id, urls)
}

/** Records the latest links of a run, also for its files: the links are what connects a file with its output. */
function recordLinks(db: OpenDatabase, address: string, id: string, urls: readonly string[]): void {
  const found = db.get(FIND, address, id)
  if (found === undefined || found.urls === JSON.stringify(urls)) return
  const { row, urls: before } = runOfRow(found)
  // A run that succeeded without URLs may get them later.
  db.run(
    `UPDATE runs SET urls = ?, error_code = NULL, error_message = NULL, answer = NULL
     WHERE address = ? AND id = ?`,
    JSON.stringify(urls),
    address,
    id,
  )
  const positions = positionsOf(before)
  for (const { file, url } of db.all('SELECT file, url FROM files WHERE row = ?', row)) {
    const fresh = urls[positions.get(String(url)) ?? -1]
    if (fresh !== undefined && fresh !== url)
      db.run('UPDATE files SET url = ? WHERE file = ?', fresh, Number(file))
  }
}

/** Marks all runs as queued in one transaction. */
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
    `INSERT INTO files (row, path, bytes, sha256, url, content_type, written_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)
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
