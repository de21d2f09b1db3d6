/** The tables of the journal, the conversion of their rows to values, and the statements that list them. */
import { sep } from 'node:path'
import type { OpenDatabase, Row, SqlValue } from '../host/database.js'
import { readJson } from '../protocol/json.js'
import type { DownloadedFile } from '../protocol/media.js'

/** A released script never changes. `test/journal/journal.test.ts` shows that runs are listed through an index. */
export const JOURNAL_MIGRATIONS: readonly string[] = [
  `
  -- One row for each create that was about to be sent. Times are milliseconds since the epoch.
  CREATE TABLE runs (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    -- How a row without an id is called, such as ~3f2a.
    key TEXT,
    -- The service's own id, from the moment at which its 201 was read.
    id TEXT,
    -- The service's base address; 'local' for the one of --local.
    address TEXT NOT NULL,
    profile TEXT NOT NULL,
    kind TEXT,
    model TEXT NOT NULL,
    -- JSON; data: URLs as {sha256, bytes, content_type}.
    input TEXT NOT NULL,
    -- Equal for requests that ask for the same: a hash of model and input.
    identity TEXT NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('sending', 'unconfirmed', 'going', 'succeeded', 'failed')),
    -- The service's word, else 'sending', 'unconfirmed' or 'accepted'.
    status TEXT NOT NULL,
    -- Who sends it.
    pid INTEGER,
    started_at TEXT,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    -- From the sending to the first sight of a final status.
    elapsed_ms INTEGER,
    -- How long the run took, where that was seen and not found out afterwards.
    took_ms INTEGER,
    -- JSON list.
    urls TEXT,
    error_code TEXT,
    error_message TEXT,
    -- What came back for a create whose outcome is not known, or for an id that was not found.
    answer_status INTEGER,
    answer TEXT
  ) STRICT;
  CREATE INDEX runs_by_id ON runs (address, id) WHERE id IS NOT NULL;
  CREATE UNIQUE INDEX runs_by_key ON runs (key) WHERE key IS NOT NULL;
  CREATE INDEX runs_by_address ON runs (address);
  -- One for each phase that is asked for: SQLite does not see that phase = 'going' lies within a list.
  CREATE INDEX runs_sending ON runs (address) WHERE phase = 'sending';
  CREATE INDEX runs_unconfirmed ON runs (address) WHERE phase = 'unconfirmed';
  CREATE INDEX runs_going ON runs (address) WHERE phase = 'going';
  CREATE INDEX runs_reusable ON runs (identity, address) WHERE phase = 'succeeded';
  CREATE INDEX runs_by_identity ON runs (identity, address);
  CREATE INDEX runs_took ON runs (address, model) WHERE took_ms IS NOT NULL;
  CREATE INDEX runs_by_time ON runs (created_at);
  CREATE INDEX runs_by_address_time ON runs (address, created_at);
  CREATE INDEX runs_by_status_time ON runs (status, created_at);
  CREATE INDEX runs_by_kind_time ON runs (kind, created_at);
  CREATE INDEX runs_by_model_time ON runs (model, created_at);

  CREATE TABLE files (
    file INTEGER PRIMARY KEY,
    row INTEGER NOT NULL REFERENCES runs (row) ON DELETE CASCADE,
    -- Absolute.
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    url TEXT NOT NULL,
    content_type TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    UNIQUE (row, path)
  ) STRICT;
  `,
  `
  -- Lists walk runs_by_time, which takes under 0.1 s with 100,000 runs; runs_by_identity does what runs_reusable did.
  DROP INDEX IF EXISTS runs_reusable;
  DROP INDEX IF EXISTS runs_by_address_time;
  DROP INDEX IF EXISTS runs_by_status_time;
  DROP INDEX IF EXISTS runs_by_kind_time;
  DROP INDEX IF EXISTS runs_by_model_time;
  `,
  `
  -- A client's own name for a create, so that the same create is sent and paid once.
  ALTER TABLE runs ADD COLUMN request_id TEXT;
  CREATE INDEX runs_by_request ON runs (address, request_id) WHERE request_id IS NOT NULL;
  `,
  `
  -- Creates that have a request id and were certainly not sent. One that was sent has a row in runs instead.
  CREATE TABLE prepared (
    address TEXT NOT NULL,
    request_id TEXT NOT NULL,
    prepared_at INTEGER NOT NULL,
    PRIMARY KEY (address, request_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX prepared_by_time ON prepared (prepared_at);
  `,
  `
  -- In millionths of the currency. NULL where the price was not known.
  ALTER TABLE runs ADD COLUMN estimate INTEGER;
  ALTER TABLE runs ADD COLUMN currency TEXT;
  -- JSON list of texts.
  ALTER TABLE runs ADD COLUMN labels TEXT;
  -- Marks of synthetic media. NULL where the file was not read for them.
  ALTER TABLE files ADD COLUMN content_credentials INTEGER;
  ALTER TABLE files ADD COLUMN digital_source_type TEXT;
  `,
  `
  -- Of a run that a batch created.
  ALTER TABLE runs ADD COLUMN row_name TEXT;
  ALTER TABLE runs ADD COLUMN manifest TEXT;
  `,
  `
  -- Working folder of the command that created the run.
  ALTER TABLE runs ADD COLUMN folder TEXT;
  `,
  `
  DROP INDEX IF EXISTS runs_by_identity;
  ALTER TABLE files DROP COLUMN content_credentials;
  ALTER TABLE files DROP COLUMN digital_source_type;
  `,
  `
  -- Names this state folder in the lock files of batches.
  CREATE TABLE state_folder (id TEXT NOT NULL) STRICT;
  INSERT INTO state_folder VALUES (lower(hex(randomblob(8))));
  -- Of a run that a batch created: the id and the path of its lock file, and the name of the entry.
  ALTER TABLE runs ADD COLUMN batch TEXT;
  ALTER TABLE runs ADD COLUMN lock_path TEXT;
  ALTER TABLE runs ADD COLUMN entry TEXT;
  -- 0 until the lock file has the run, or the run has ended without a result.
  ALTER TABLE runs ADD COLUMN recorded INTEGER;
  CREATE INDEX runs_of_batch ON runs (batch) WHERE recorded = 0;
  CREATE INDEX runs_of_entry ON runs (entry, identity) WHERE recorded = 0;
  CREATE INDEX runs_in_flight ON runs (id) WHERE recorded = 0;
  CREATE INDEX runs_of_lock ON runs (lock_path) WHERE recorded = 0;
  DROP INDEX IF EXISTS runs_took;
  DROP INDEX IF EXISTS prepared_by_time;
  `,
  `
  -- Absolute path of -o, for a later command that follows the run.
  ALTER TABLE runs ADD COLUMN output TEXT;
  `,
  `
  -- What the provider charged, in millionths. NULL where the service did not say it.
  ALTER TABLE runs ADD COLUMN charged INTEGER;
  ALTER TABLE runs ADD COLUMN charged_currency TEXT;
  `,
  `
  -- Finds an id at every address too.
  DROP INDEX IF EXISTS runs_by_id;
  CREATE INDEX runs_by_id ON runs (id, address) WHERE id IS NOT NULL;
  `,
]

/**
 * ```
 * sending ──► running ──► succeeded
 *   │  │         └──────► failed
 *   │  └─► unconfirmed              the outcome is unknown, or the process ended
 *   └─► (no row)                    definitely not accepted
 * ```
 */
export type JournalPhase = 'sending' | 'unconfirmed' | 'running' | 'succeeded' | 'failed'

/** What a create was expected to cost. */
export interface RunEstimate {
  readonly millionths: number
  readonly currency: string
}

export interface JournalRun {
  readonly row: number
  /** `~` and hexadecimal digits; undefined if the row has an id. */
  readonly key: string | undefined
  readonly id: string | undefined
  readonly address: string
  readonly profile: string
  readonly kind: string | undefined
  readonly model: string
  /** Input as it was sent, with data: URLs as `{sha256, bytes, content_type}`. */
  readonly input: unknown
  /** Hash of model and input. */
  readonly identity: string
  readonly phase: JournalPhase
  readonly status: string
  /** Wall-clock time in milliseconds, directly before the create was sent. */
  readonly createdAtMs: number
  readonly finishedAtMs: number | undefined
  readonly elapsedMs: number | undefined
  /** The latest links to the outputs; they may have expired. */
  readonly urls: readonly string[]
  readonly error: { readonly code: string; readonly message: string } | undefined
  /** The response, if it did not show the outcome of the create. */
  readonly answer: { readonly status: number | undefined; readonly text: string | undefined } | undefined
  /** Name of the create, chosen by the client. */
  readonly requestId: string | undefined
  /** Undefined if the price was not known. */
  readonly estimate: RunEstimate | undefined
  readonly labels: readonly string[]
  /** Name of its row in a manifest, and the absolute path of the manifest; undefined if no batch created it. */
  readonly name: string | undefined
  readonly manifest: string | undefined
  /** Name of its entry in the lock file of a batch. */
  readonly entry: string | undefined
  /** Absolute path that `-o` of its command named, with placeholders. */
  readonly output: string | undefined
  /** The lock file of its batch does not have it yet. */
  readonly isInFlight: boolean
}

/** Finds the newest row of an id, because a service may use an id twice. */
export const FIND = 'SELECT * FROM runs WHERE address = ? AND id = ? ORDER BY row DESC LIMIT 1'

/**
 * Converts a stored phase. The file stores `running` as `going`: a new word would require rebuilding the table of every
 * user.
 */
const phaseOfStored = (stored: unknown): JournalPhase =>
  stored === 'going' ? 'running' : (stored as JournalPhase)
export const storedPhase = (phase: JournalPhase): string => (phase === 'running' ? 'going' : phase)

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

const parsed = (value: unknown): unknown => {
  try {
    return readJson(text(value) ?? 'null')
  } catch {
    return null
  }
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

export const labelsOfColumn = (value: unknown): readonly string[] => textsOf(parsed(value))

export function runOfRow(row: Row): JournalRun {
  const code = text(row.error_code)
  const [answerStatus, answer] = [number(row.answer_status), text(row.answer)]
  return {
    row: Number(row.row),
    key: text(row.key),
    id: text(row.id),
    address: text(row.address) ?? '',
    profile: text(row.profile) ?? '',
    kind: text(row.kind),
    model: text(row.model) ?? '',
    input: parsed(row.input),
    identity: text(row.identity) ?? '',
    phase: phaseOfStored(row.phase),
    status: text(row.status) ?? '',
    createdAtMs: Number(row.created_at),
    finishedAtMs: number(row.finished_at),
    elapsedMs: number(row.elapsed_ms),
    urls: textsOf(parsed(row.urls)),
    error: code === undefined ? undefined : { code, message: text(row.error_message) ?? '' },
    answer:
      answerStatus === undefined && answer === undefined ? undefined : { status: answerStatus, text: answer },
    requestId: text(row.request_id),
    estimate: amountOfColumns(row.estimate, row.currency),
    labels: labelsOfColumn(row.labels),
    name: text(row.row_name),
    manifest: text(row.manifest),
    entry: text(row.entry),
    output: text(row.output),
    isInFlight: row.recorded === 0,
  }
}

const amountOfColumns = (millionths: unknown, currency: unknown): RunEstimate | undefined =>
  typeof millionths === 'number' && typeof currency === 'string' ? { millionths, currency } : undefined

export const fileOfRow = (row: Row): DownloadedFile => ({
  path: text(row.path) ?? '',
  bytes: Number(row.bytes),
  sha256: text(row.sha256) ?? '',
  url: text(row.url) ?? '',
  content_type: text(row.content_type) ?? '',
})

/** Inserts one row and returns its number. The names of the values are the columns. */
export function insertRow(
  db: OpenDatabase,
  table: string,
  values: Readonly<Record<string, SqlValue | undefined>>,
  onConflict = '',
): number {
  const names = Object.keys(values)
  const inserted = db.get(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')}) ${onConflict} RETURNING row`,
    ...Object.values(values).map((value) => value ?? null),
  )
  return Number(inserted?.row)
}

/** Changes columns of the rows that the condition selects. Returns how many rows it has changed. */
export function updateRows(
  db: OpenDatabase,
  values: Readonly<Record<string, SqlValue | undefined>>,
  where: string,
  ...conditions: readonly SqlValue[]
): number {
  const sets = Object.keys(values).map((name) => `${name} = ?`)
  return db.run(
    `UPDATE runs SET ${sets.join(', ')} WHERE ${where}`,
    ...Object.values(values).map((value) => value ?? null),
    ...conditions,
  ).changes
}

/** Sorts the files of a run by output, because downloads end in any order. Copies of one output keep their order. */
export function sortByOutput(
  files: readonly DownloadedFile[],
  { urls }: JournalRun,
): readonly DownloadedFile[] {
  const positions = positionsOf(urls)
  const positionOf = ({ url }: DownloadedFile) => positions.get(url) ?? urls.length
  return files.toSorted((one, other) => positionOf(one) - positionOf(other))
}

/** Returns the position of each link among the outputs, from 0. Of equal links, the first one counts. */
export const positionsOf = (urls: readonly string[]): ReadonlyMap<string, number> =>
  new Map(urls.map((url, position) => [url, position] as const).reverse())

export interface ListFilter {
  readonly address?: string | undefined
  /** Status as it is shown; not case-sensitive. */
  readonly status?: string | undefined
  readonly kind?: string | undefined
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
  const conditions: string[] = []
  const values: SqlValue[] = []
  const add = (condition: string, ...own: readonly SqlValue[]) => {
    conditions.push(condition)
    values.push(...own)
  }
  for (const name of Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]) {
    const value = filter[name]
    if (value !== undefined) add(CONDITIONS[name], value)
  }
  for (const label of filter.labels ?? []) add(HAS_LABEL, label)
  const { folder } = filter
  if (folder !== undefined) {
    const within = folder.endsWith(sep) ? folder : `${folder}${sep}`
    add(IS_IN_FOLDER, sep, within, within, within)
  }
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `, values }
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
