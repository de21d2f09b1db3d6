/** The tables of `service.db` in pages, as the schema of PostgreSQL has them. */
import type { OpenDatabase, Row } from '../../host/database.js'
import type { ImportedRow, ImportedSequence, ImportedTable } from '../store/postgres/import.js'
import { imagesOf } from '../store/postgres/stored-images.js'
import { promptOf } from '../store/postgres/stored-prompt.js'
import type { StoredInput } from '../stored-run.js'

const PAGE_ROWS = 500

export interface SqliteTables {
  readonly tables: readonly ImportedTable[]
  sequences(): readonly ImportedSequence[]
}

interface Source {
  readonly table: string
  /** By which the rows are ordered and paged; unique. */
  readonly key: string
  convert(row: Row): ImportedRow
}

const isSet = (value: unknown): boolean => value !== 0

/** No worker renders any more, so what was being rendered is queued again, as after a restart. */
function runOf(row: Row): ImportedRow {
  const { error_code, error_message, ...same } = row
  const isInterrupted = row.status === 'processing'
  const input = JSON.parse(String(row.input)) as StoredInput
  return {
    ...same,
    ...(isInterrupted && { status: 'queued', started_at: null }),
    owner: '',
    claim: '',
    images: imagesOf(input),
    prompt: promptOf(input),
    failure: error_code === null ? null : JSON.stringify({ code: error_code, message: error_message }),
  }
}

const ACCOUNTS = 'accounts'
const RUN_COLUMNS =
  'sequence, id, account_id, key_id, model, kind, input, images, prompt, price, status, owner, claim, attempts, failure, created_at, started_at, finished_at'
const KEY_COLUMNS =
  'id, account_id, name, hash, disabled, expires_at, spend_limit, spent, quota, used, allowed_ips, rate_requests, rate_window_ms, created_at, prefix, last_used_at, old_hash, old_until'

const SOURCES: readonly (Source & { readonly name: string; readonly columns: string })[] = [
  {
    name: 'accounts',
    columns: 'id, name, balance, banned, created_at',
    table: ACCOUNTS,
    key: 'id',
    convert: (row) => ({ ...row, banned: isSet(row.banned) }),
  },
  {
    name: 'turns',
    columns: 'account_id, served',
    table: `(SELECT * FROM ${ACCOUNTS} WHERE served > 0)`,
    key: 'id',
    convert: ({ id, served }) => ({ account_id: id, served }),
  },
  {
    name: 'keys',
    columns: KEY_COLUMNS,
    table: 'keys',
    key: 'id',
    convert: (row) => ({
      ...row,
      disabled: isSet(row.disabled),
      allowed_ips: row.allowed_ips === null ? null : JSON.parse(String(row.allowed_ips)),
    }),
  },
  // Without sessions, links and codes: people sign in again.
  {
    name: 'users',
    columns: 'id, email, account_id, password, last_seen_at, created_at',
    table: 'users',
    key: 'id',
    convert: (row) => row,
  },
  { name: 'runs', columns: RUN_COLUMNS, table: 'runs', key: 'sequence', convert: runOf },
  {
    name: 'outputs',
    columns: 'run_id, position, token, name, content_type, bytes, sha256',
    table: 'outputs',
    key: 'rowid',
    convert: (row) => row,
  },
  {
    name: 'lost_attempts',
    columns: 'id, run_id, started_at, ended_at, result',
    table: 'lost_attempts',
    key: 'id',
    convert: (row) => row,
  },
  {
    name: 'credits',
    columns: 'sequence, account_id, kind, amount, run_id, key_id, created_at',
    table: 'credits',
    key: 'sequence',
    convert: (row) => row,
  },
]

export function tablesOf(database: Pick<OpenDatabase, 'all' | 'get'>): SqliteTables {
  function* pages({ table, key, convert }: Source): Generator<readonly ImportedRow[]> {
    let last = 0
    for (;;) {
      const rows = database.all(
        `SELECT *, ${key} AS page_key FROM ${table} WHERE ${key} > ?1 ORDER BY ${key} LIMIT ${PAGE_ROWS}`,
        last,
      )
      if (rows.length === 0) return
      yield rows.map(({ page_key, ...row }) => convert(row))
      last = Number(rows.at(-1)?.page_key)
    }
  }
  const lastOf = (column: string, table: string) =>
    Number(database.get(`SELECT coalesce(max(${column}), 0) AS last FROM ${table}`)?.last)
  return {
    tables: SOURCES.map((source) => ({
      name: source.name,
      columns: source.columns.split(', '),
      pages: pages(source),
    })),
    sequences: () => [
      { name: 'accounts.id', last: lastOf('id', ACCOUNTS) },
      { name: 'keys.id', last: lastOf('id', 'keys') },
      { name: 'users.id', last: lastOf('id', 'users') },
      { name: 'lost_attempts.id', last: lastOf('id', 'lost_attempts') },
      { name: 'runs.sequence', last: lastOf('sequence', 'runs') },
      { name: 'credits.sequence', last: lastOf('sequence', 'credits') },
      { name: 'turns_served', last: lastOf('served', ACCOUNTS) },
    ],
  }
}
