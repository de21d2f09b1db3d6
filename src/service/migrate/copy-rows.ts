/** Copies the rows of `service.db` into an empty schema of PostgreSQL, in one transaction. */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { messageOf, RushesError, usageError } from '../../errors.js'
import type { OpenDatabase, Row, SqlValue } from '../../host/database.js'
import type { Verification } from '../store/account-store.js'
import { isConnectionLost, nameOf } from '../store/postgres/connection-errors.js'
import { type Client, createClient } from '../store/postgres/driver.js'
import { openSchema } from '../store/postgres/open-schema.js'
import { damagedFields, verificationOf } from '../store/rows.js'
import { LEDGER } from '../store/statements.js'

export interface RowsCopy {
  readonly source: OpenDatabase
  readonly url: string
  /** Id by which `isImported` recognizes this copy. */
  readonly id: string
  readonly signal?: AbortSignal | undefined
  /** Called before the commit with the verification of the copied data. Throw to roll back everything. */
  check(verification: Verification): void
}

/** The response to the commit was lost, and the database cannot be queried: the rows may have been committed. */
export class CommitUnknown extends RushesError {
  constructor(url: string, cause: unknown) {
    super('usage', `The connection to ${nameOf(url)} was lost during the commit: ${messageOf(cause)}.`, {
      hint: 'Run the same command again: it looks whether the data was moved, and completes or repeats the move.',
      cause,
    })
  }
}

/**
 * Returns the id of a copy, which depends on all rows that are copied: a folder that was used after its move, for example
 * to disable a key, is not taken for the folder that was moved.
 */
export async function copyIdOf(source: OpenDatabase, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash('sha256').update(String(source.get('PRAGMA application_id')?.application_id))
  for (const table of TABLES)
    for (const page of pagesOf(source, table)) {
      hash.update(table.name).update(JSON.stringify(page))
      // Lets an interrupt be noticed.
      await setImmediate()
      signal?.throwIfAborted()
    }
  return hash.digest('hex')
}

/**
 * Returns whether the import with this id was committed. Waits up to 10 s for an import in progress. Throws
 * `RushesError` (usage) if the database cannot be used or has other data.
 */
export async function isImported(url: string, id: string): Promise<boolean> {
  await openSchema(url)
  return await onSchema(url, async (client) => {
    await client.query(
      `BEGIN; SET LOCAL lock_timeout = ${MAX_LOCK_WAIT_MS}; LOCK TABLE accounts IN ROW SHARE MODE`,
    )
    const { rows } = await client.query('SELECT migration FROM format')
    if (rows[0]?.migration === id) return true
    await refuseData(client, url)
    return false
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

/** Copies all rows in one transaction. Throws as `isImported` does, or throws `CommitUnknown`. */
export async function copyRows(copy: RowsCopy): Promise<Verification> {
  const { url, id, signal } = copy
  await openSchema(url)
  return await onSchema(url, async (client) => {
    // Closing the connection also ends a statement that waits for a lock.
    const stop = () => void client.end().catch(() => {})
    signal?.addEventListener('abort', stop, { once: true })
    try {
      const verification = await writeAll(client, copy)
      copy.check(verification)
      signal?.removeEventListener('abort', stop)
      signal?.throwIfAborted()
      await client.query('COMMIT').catch(async (error) => {
        if (!isConnectionLost(error)) throw error
        const isDone = await isImported(url, id).catch((cause) => {
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

/** Time after which the server rolls back an idle transaction, if this process was killed. */
const MAX_IDLE_MS = 60_000

/** Copies all rows, and leaves the transaction open. */
async function writeAll(client: Client, { source, url, id, signal }: RowsCopy): Promise<Verification> {
  await client.query(
    `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = ${MAX_IDLE_MS}`,
  )
  // Blocks writes of other processes to these tables until the commit.
  await client.query('LOCK TABLE accounts, keys, runs, credits, workers IN EXCLUSIVE MODE')
  await refuseData(client, url)
  for (const table of TABLES) {
    const { name } = table
    for (const page of pagesOf(source, table)) {
      signal?.throwIfAborted()
      const list = Object.keys(page[0] ?? {}).join(', ')
      // The rows get the types of the table's columns.
      const text = `INSERT INTO ${name} (${list}) SELECT ${list} FROM json_populate_recordset(null::${name}, $1)`
      await client.query(text, [JSON.stringify(page)])
    }
  }
  for (const name of NUMBERED) {
    const [table, column] = name.split('.')
    const last = lastAssigned(source, name)
    if (last > 0)
      await client.query('SELECT setval(pg_get_serial_sequence($1, $2), $3)', [table, column, last])
  }
  // The id goes along, so that the files still belong to the database.
  const databaseId = source.get('SELECT database_id FROM format')?.database_id
  await client.query('UPDATE format SET migration = $1, database_id = $2', [id, databaseId])
  const results = []
  for (const text of Object.values(LEDGER)) results.push((await client.query(text)).rows)
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

const PAGE_ROWS = 500
/** Maximum bytes of the long texts in one page. A larger row is a page by itself. */
const PAGE_BYTES = 4 * 1024 * 1024

interface CopiedTable {
  readonly name: string
  /** Columns that order and page the rows. Together they are unique. */
  readonly key: readonly string[]
  /** SQL for the bytes of a row, for tables with long texts. */
  readonly bytes?: string
  convert?(row: Row): Row
}

const isSet = (value: unknown): boolean => value !== 0

/** Converts a run. Workers have ended, so runs in processing return to the queue, as after a restart. */
function runOf(row: Row): Row {
  const isInterrupted = row.status === 'processing'
  return {
    ...row,
    ...(isInterrupted && { status: 'queued', started_at: null }),
    // PostgreSQL refuses NUL.
    ...Object.fromEntries(damagedFields(row).map((name) => [name, `${row[name]}`.split('\0', 1)[0]])),
    owner: '',
    stopping: isSet(row.stopping),
  }
}

export interface DamagedRun {
  readonly id: string
  /** `input`, `failure` or `job`. */
  readonly fields: readonly string[]
}

/** Lists the runs whose stored JSON is damaged. */
export function* damagedRuns(source: OpenDatabase): Generator<DamagedRun> {
  const key = ['sequence']
  const bytes = 'octet_length(input)'
  for (const page of pagesOf(source, { name: 'runs', key, bytes }))
    for (const row of page) {
      const fields = damagedFields(row)
      if (fields.length > 0) yield { id: String(row.id), fields }
    }
}

export const OUTPUTS: CopiedTable = { name: 'outputs', key: ['run_id', 'position'] }

/**
 * Tables, ordered so that each row follows the rows that it refers to. Sessions, links and codes are not copied: users
 * sign in again.
 */
export const TABLES: readonly CopiedTable[] = [
  { name: 'accounts', key: ['id'], convert: (row) => ({ ...row, banned: isSet(row.banned) }) },
  { name: 'turns', key: ['account_id'] },
  {
    name: 'keys',
    key: ['id'],
    bytes: 'coalesce(octet_length(allowed_ips), 0)',
    convert: (row) => ({ ...row, disabled: isSet(row.disabled) }),
  },
  { name: 'users', key: ['id'] },
  {
    name: 'runs',
    key: ['sequence'],
    bytes: 'octet_length(input) + coalesce(octet_length(failure), 0) + coalesce(octet_length(job), 0)',
    convert: runOf,
  },
  OUTPUTS,
  { name: 'credits', key: ['sequence'] },
  { name: 'files', key: ['kind', 'key'] },
  { name: 'run_files', key: ['run_id', 'kind', 'key'] },
]

const NUMBERED = [
  'accounts.id',
  'keys.id',
  'users.id',
  'tokens.id',
  'runs.sequence',
  'credits.sequence',
] as const

export function* pagesOf(
  { all }: OpenDatabase,
  { name, key, bytes = '0', convert = (row) => row }: CopiedTable,
): Generator<readonly Row[]> {
  const order = key.join(', ')
  const parameters = (first: number) => key.map((_, at) => `?${first + at}`).join(', ')
  const keyOf = (row: Row | undefined) => key.map((column) => row?.[column] as SqlValue)
  let last: readonly SqlValue[] | undefined
  for (;;) {
    const after = last === undefined ? 'true' : `(${order}) > (${parameters(1)})`
    const next = all(
      `SELECT ${order}, ${bytes} AS page_bytes FROM ${name} WHERE ${after} ORDER BY ${order} LIMIT ${PAGE_ROWS}`,
      ...(last ?? []),
    )
    const page = next.slice(0, countThatFit(next))
    if (page.length === 0) return
    const first = keyOf(page[0])
    last = keyOf(page.at(-1))
    const rows = all(
      `SELECT * FROM ${name} WHERE (${order}) >= (${parameters(1)}) AND (${order}) <= (${parameters(1 + key.length)})`,
      ...first,
      ...last,
    )
    yield rows.map(convert)
  }
}

/** Returns the number of rows that fit into a page. At least 1 if there are rows, so that the paging ends. */
function countThatFit(rows: readonly Row[]): number {
  let bytes = 0
  const tooMany = rows.findIndex((row, at) => {
    bytes += Number(row.page_bytes)
    return at > 0 && bytes > PAGE_BYTES
  })
  return tooMany === -1 ? rows.length : tooMany
}

/**
 * Returns the highest number ever assigned, even if its row was removed: SQLite stores it for AUTOINCREMENT columns.
 */
function lastAssigned({ get }: OpenDatabase, name: string): number {
  const [table, column] = name.split('.')
  const row = get(
    `SELECT max(coalesce((SELECT max(${column}) FROM ${table}), 0),
       coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${table}'), 0)) AS last`,
  )
  return Number(row?.last)
}
