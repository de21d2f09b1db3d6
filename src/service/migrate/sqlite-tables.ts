/** The tables of `service.db` in pages, as the schema of PostgreSQL has them. */
import type { OpenDatabase, Row, Value } from '../../host/database.js'
import type { ImportedRow, ImportedSequence, ImportedTable } from '../store/postgres/import.js'
import { aspectRatioOf, imagesOf, promptOf } from '../store/run-columns.js'
import type { StoredInput } from '../stored-run.js'

const PAGE_ROWS = 500
/** Of the texts that can be long. A larger row is a page by itself. */
const PAGE_BYTES = 4 * 1024 * 1024

interface Source {
  readonly name: string
  /** Of PostgreSQL. */
  readonly columns: string
  /** Of SQLite; by default the one of this name. */
  readonly from?: string
  /** By which the rows are ordered and paged; unique together. */
  readonly key: readonly string[]
  /** SQL for the bytes of a row, where they can be many. */
  readonly bytes?: string
  convert?(row: Row): ImportedRow
}

const isSet = (value: unknown): boolean => value !== 0

/** No worker renders any more, so what was being rendered is queued again, as after a restart. */
function runOf(row: Row): ImportedRow {
  const { error_code, error_message, stored_input, ...same } = row
  const isInterrupted = row.status === 'processing'
  const input = JSON.parse(String(stored_input)) as StoredInput
  return {
    ...same,
    ...(isInterrupted && { status: 'queued', started_at: null }),
    input: stored_input,
    prompt: row.prompt ?? promptOf(input),
    aspect_ratio: row.aspect_ratio ?? aspectRatioOf(input),
    owner: '',
    claim: '',
    images: imagesOf(input),
    failure: error_code === null ? null : JSON.stringify({ code: error_code, message: error_message }),
  }
}

/** A process of an earlier version, which had the file open while it was migrated, writes inputs into the runs themselves. */
const RUNS =
  '(SELECT runs.*, coalesce(run_inputs.input, runs.input) AS stored_input FROM runs LEFT JOIN run_inputs ON run_id = id)'

/** Each row comes after those that it refers to. Without sessions, links and codes: people sign in again. */
const SOURCES: readonly Source[] = [
  {
    name: 'accounts',
    columns: 'id, name, balance, banned, created_at',
    key: ['id'],
    convert: (row) => ({ ...row, banned: isSet(row.banned) }),
  },
  {
    name: 'turns',
    columns: 'account_id, served',
    from: '(SELECT * FROM accounts WHERE served > 0)',
    key: ['id'],
    convert: ({ id, served }) => ({ account_id: id, served }),
  },
  {
    name: 'keys',
    columns:
      'id, account_id, name, hash, disabled, expires_at, spend_limit, spent, quota, used, allowed_ips, rate_requests, rate_window_ms, created_at, prefix, last_used_at, old_hash, old_until',
    key: ['id'],
    bytes: 'coalesce(octet_length(allowed_ips), 0)',
    convert: (row) => ({
      ...row,
      disabled: isSet(row.disabled),
      allowed_ips: row.allowed_ips === null ? null : JSON.parse(String(row.allowed_ips)),
    }),
  },
  { name: 'users', columns: 'id, email, account_id, password, last_seen_at, created_at', key: ['id'] },
  {
    name: 'runs',
    columns:
      'sequence, id, account_id, key_id, model, kind, input, images, prompt, aspect_ratio, price, status, owner, claim, attempts, failure, created_at, started_at, finished_at',
    from: RUNS,
    key: ['sequence'],
    bytes: 'octet_length(stored_input) + coalesce(octet_length(error_message), 0)',
    convert: runOf,
  },
  {
    name: 'outputs',
    columns: 'run_id, position, token, name, content_type, bytes, sha256',
    key: ['run_id', 'position'],
  },
  { name: 'lost_attempts', columns: 'id, run_id, started_at, ended_at, result', key: ['id'] },
  {
    name: 'credits',
    columns: 'sequence, account_id, kind, amount, run_id, key_id, created_at',
    key: ['sequence'],
  },
  {
    name: 'files',
    columns: 'kind, key, sha256, bytes, state, run_id, owner, used_at',
    key: ['kind', 'key'],
  },
  { name: 'run_files', columns: 'run_id, kind, key', key: ['run_id', 'kind', 'key'] },
  {
    name: 'idempotency_keys',
    columns: 'account_id, key, request, run_id, expires_at',
    key: ['account_id', 'key'],
  },
]

export interface SqliteTables {
  readonly tables: readonly ImportedTable[]
  sequences(): readonly ImportedSequence[]
}

/** Nothing may write to the database before the last page is read. */
export const tablesOf = (database: Pick<OpenDatabase, 'all' | 'get'>): SqliteTables => ({
  tables: SOURCES.map((source) => ({
    name: source.name,
    columns: source.columns.split(', '),
    pages: pagesOf(database, source),
  })),
  sequences: () => [
    ...NUMBERED.map((name) => lastGiven(database, name)),
    { name: 'turns_served', last: lastGiven(database, 'accounts.served').last },
  ],
})

const NUMBERED = [
  'accounts.id',
  'keys.id',
  'users.id',
  'sessions.id',
  'runs.sequence',
  'lost_attempts.id',
  'credits.sequence',
] as const

function* pagesOf(
  { all }: Pick<OpenDatabase, 'all'>,
  { name, from = name, key, bytes = '0', convert = (row) => row }: Source,
): Generator<readonly ImportedRow[]> {
  const order = key.join(', ')
  const parameters = (first: number) => key.map((_, at) => `?${first + at}`).join(', ')
  const keyOf = (row: Row | undefined) => key.map((column) => row?.[column] as Value)
  let last: readonly Value[] | undefined
  for (;;) {
    const after = last === undefined ? 'true' : `(${order}) > (${parameters(1)})`
    const next = all(
      `SELECT ${order}, ${bytes} AS page_bytes FROM ${from} WHERE ${after} ORDER BY ${order} LIMIT ${PAGE_ROWS}`,
      ...(last ?? []),
    )
    const page = next.slice(0, countThatFit(next))
    if (page.length === 0) return
    const first = keyOf(page[0])
    last = keyOf(page.at(-1))
    const rows = all(
      `SELECT * FROM ${from} WHERE (${order}) >= (${parameters(1)}) AND (${order}) <= (${parameters(1 + key.length)})`,
      ...first,
      ...last,
    )
    yield rows.map(convert)
  }
}

/** At least one, so that there is an end. */
function countThatFit(rows: readonly Row[]): number {
  let bytes = 0
  const tooMany = rows.findIndex((row, at) => {
    bytes += Number(row.page_bytes)
    return at > 0 && bytes > PAGE_BYTES
  })
  return tooMany === -1 ? rows.length : tooMany
}

/** Also a number whose row was removed: SQLite keeps the last of an AUTOINCREMENT column. */
function lastGiven({ get }: Pick<OpenDatabase, 'get'>, name: string): ImportedSequence {
  const [table, column] = name.split('.')
  const row = get(
    `SELECT max(coalesce((SELECT max(${column}) FROM ${table}), 0),
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${table}'), 0)) AS last`,
  )
  return { name, last: Number(row?.last) }
}
