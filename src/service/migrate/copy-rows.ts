/** Copies the rows of `service.db` into an empty schema of PostgreSQL, all or nothing. */

import { messageOf, RushesError, usageError } from '../../errors.js'
import type { OpenDatabase, Row, SqlValue } from '../../host/database.js'
import type { Verification } from '../store/account-store.js'
import { LEDGER_STATEMENTS } from '../store/postgres/accounts.js'
import { isConnectionLost, nameOf } from '../store/postgres/connection-errors.js'
import { type Client, createClient } from '../store/postgres/driver.js'
import { openSchema } from '../store/postgres/open-schema.js'
import { aspectRatioOf, promptOf, verificationOf } from '../store/rows.js'
import type { StoredInput } from '../stored-run.js'

type CopiedRow = Readonly<Record<string, unknown>>

export interface RowsCopy {
  readonly source: Pick<OpenDatabase, 'all' | 'get'>
  readonly url: string
  /** By which `wasImported` knows this copy. */
  readonly id: string
  readonly signal?: AbortSignal | undefined
  /** Called with what the database has before the commit. Throws to undo everything. */
  check(verification: Verification): void
  /** Called last, right before the commit, when the signal has no effect. */
  beforeCommit(): void
}

/** The answer to the commit was lost, and the database cannot be asked: the rows may be there. */
export class CommitUnknown extends RushesError {
  constructor(url: string, cause: unknown) {
    super('usage', `The connection to ${nameOf(url)} was lost during the commit: ${messageOf(cause)}.`, {
      hint: 'Run the same command again: it looks whether the data was moved, and completes or repeats the move.',
      cause,
    })
  }
}

/** Throws `RushesError` (usage) when the database cannot be used, or has data already. */
export async function refuseFilled(url: string): Promise<void> {
  await openSchema(url)
  await onSchema(url, (client) => refuseData(client, url))
}

/** Whether the import with this id was committed. Waits while it is being made. Throws when the database cannot be asked. */
export async function wasImported(url: string, id: string): Promise<boolean> {
  await openSchema(url)
  return await onSchema(url, async (client) => {
    await client.query(
      `BEGIN; SET LOCAL lock_timeout = ${MAX_LOCK_WAIT_MS}; LOCK TABLE accounts IN ROW SHARE MODE`,
    )
    const { rows } = await client.query('SELECT migration FROM format')
    return rows[0]?.migration === id
  })
}
const MAX_LOCK_WAIT_MS = 10_000

async function onSchema<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = createClient(url)
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('SET search_path = rushes')
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/** Throws as `refuseFilled` does, and `CommitUnknown`. */
export async function copyRows(copy: RowsCopy): Promise<Verification> {
  const { url, id, signal } = copy
  await openSchema(url)
  return await onSchema(url, async (client) => {
    // Ends a statement that waits for a lock too.
    const stop = () => void client.end().catch(() => {})
    signal?.addEventListener('abort', stop, { once: true })
    try {
      const verification = await writeAll(client, copy)
      copy.check(verification)
      signal?.removeEventListener('abort', stop)
      signal?.throwIfAborted()
      copy.beforeCommit()
      await client.query('COMMIT').catch(async (error) => {
        if (!isConnectionLost(error)) throw error
        const isDone = await wasImported(url, id).catch((cause) => {
          throw new CommitUnknown(url, cause)
        })
        if (!isDone) throw error
      })
      return verification
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      if (!(error instanceof CommitUnknown)) signal?.throwIfAborted()
      throw error
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  })
}

/** The server undoes it when this process vanishes. */
const MAX_IDLE_MS = 60_000

/** Leaves the transaction open. */
async function writeAll(client: Client, { source, url, id, signal }: RowsCopy): Promise<Verification> {
  await client.query(
    `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = ${MAX_IDLE_MS}`,
  )
  // No other process writes into these tables until the end.
  await client.query('LOCK TABLE accounts, keys, runs, credits, workers IN EXCLUSIVE MODE')
  await refuseData(client, url)
  // The files of the outputs are copied as rows, and may be removed.
  await client.query('ALTER TABLE outputs DISABLE TRIGGER outputs_stored')
  const columns = await columnsOf(client)
  for (const table of TABLES) {
    const { name } = table
    for (const page of pagesOf(source, table)) {
      signal?.throwIfAborted()
      const list = Object.keys(page[0] ?? {})
        .filter((column) => columns.has(`${name}.${column}`))
        .join(', ')
      // The types are those of the columns.
      const text = `INSERT INTO ${name} (${list}) SELECT ${list} FROM json_populate_recordset(null::${name}, $1)`
      await client.query(text, [JSON.stringify(page)])
    }
  }
  for (const name of NUMBERED) {
    const [table, column] = name.split('.')
    const last = lastGiven(source, name)
    if (last > 0)
      await client.query('SELECT setval(pg_get_serial_sequence($1, $2), $3)', [table, column, last])
  }
  const served = lastGiven(source, 'accounts.served')
  if (served > 0) await client.query('SELECT setval($1, $2)', ['turns_served', served])
  await client.query('UPDATE format SET migration = $1', [id])
  // Otherwise checked at the commit.
  await client.query('SET CONSTRAINTS ALL IMMEDIATE')
  await client.query('ALTER TABLE outputs ENABLE TRIGGER outputs_stored')
  const results = []
  for (const { text } of LEDGER_STATEMENTS) results.push((await client.query(text)).rows)
  return verificationOf(results)
}

async function refuseData(client: Client, url: string): Promise<void> {
  const { rows } = await client.query('SELECT EXISTS (SELECT 1 FROM accounts) AS "hasData"')
  if (rows[0]?.hasData === true)
    throw usageError(
      `${nameOf(url)} already has the data of a service; nothing was changed.`,
      'Use an empty database, or drop its schema first: `DROP SCHEMA rushes CASCADE` removes everything in it.',
    )
}

/** Of all tables, each as `table.column`: a column with the same name in both databases is copied. */
async function columnsOf(client: Client): Promise<ReadonlySet<string>> {
  const { rows } = await client.query(
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'rushes'",
  )
  return new Set(rows.map(({ table_name, column_name }) => `${table_name}.${column_name}`))
}

const PAGE_ROWS = 500
/** Of the texts that can be long. A larger row is a page by itself. */
const PAGE_BYTES = 4 * 1024 * 1024

interface CopiedTable {
  readonly name: string
  /** Of SQLite; by default the one of this name. */
  readonly from?: string
  /** By which the rows are ordered and paged; unique together. */
  readonly key: readonly string[]
  /** SQL for the bytes of a row, where they can be many. */
  readonly bytes?: string
  convert?(row: Row): CopiedRow
}

const isSet = (value: unknown): boolean => value !== 0

/** No worker is left, so processing runs are queued again, as after a restart. */
function runOf(row: Row): CopiedRow {
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
    failure: error_code === null ? null : JSON.stringify({ code: error_code, message: error_message }),
  }
}

/** A process of an earlier version, which had the file open while it was migrated, writes inputs into the runs themselves. */
const RUNS =
  '(SELECT runs.*, coalesce(run_inputs.input, runs.input) AS stored_input FROM runs LEFT JOIN run_inputs ON run_id = id)'

/** Each row comes after those that it refers to. Without sessions, links and codes: people sign in again. */
export const TABLES: readonly CopiedTable[] = [
  {
    name: 'accounts',
    key: ['id'],
    convert: (row) => ({ ...row, banned: isSet(row.banned) }),
  },
  {
    name: 'turns',
    from: '(SELECT * FROM accounts WHERE served > 0)',
    key: ['id'],
    convert: ({ id, served }) => ({ account_id: id, served }),
  },
  {
    name: 'keys',
    key: ['id'],
    bytes: 'coalesce(octet_length(allowed_ips), 0)',
    convert: (row) => ({
      ...row,
      disabled: isSet(row.disabled),
      allowed_ips: row.allowed_ips === null ? null : JSON.parse(String(row.allowed_ips)),
    }),
  },
  { name: 'users', key: ['id'] },
  {
    name: 'runs',
    from: RUNS,
    key: ['sequence'],
    bytes: 'octet_length(stored_input) + coalesce(octet_length(error_message), 0)',
    convert: runOf,
  },
  {
    name: 'outputs',
    key: ['run_id', 'position'],
  },
  { name: 'lost_attempts', key: ['id'] },
  {
    name: 'credits',
    key: ['sequence'],
  },
  {
    name: 'files',
    key: ['kind', 'key'],
  },
  { name: 'run_files', key: ['run_id', 'kind', 'key'] },
  {
    name: 'idempotency_keys',
    key: ['account_id', 'key'],
  },
]

const NUMBERED = [
  'accounts.id',
  'keys.id',
  'users.id',
  'sessions.id',
  'runs.sequence',
  'lost_attempts.id',
  'credits.sequence',
] as const

export function* pagesOf(
  { all }: Pick<OpenDatabase, 'all'>,
  { name, from = name, key, bytes = '0', convert = (row) => row }: CopiedTable,
): Generator<readonly CopiedRow[]> {
  const order = key.join(', ')
  const parameters = (first: number) => key.map((_, at) => `?${first + at}`).join(', ')
  const keyOf = (row: Row | undefined) => key.map((column) => row?.[column] as SqlValue)
  let last: readonly SqlValue[] | undefined
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
function lastGiven({ get }: Pick<OpenDatabase, 'get'>, name: string): number {
  const [table, column] = name.split('.')
  const row = get(
    `SELECT max(coalesce((SELECT max(${column}) FROM ${table}), 0),
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${table}'), 0)) AS last`,
  )
  return Number(row?.last)
}
