/** Fills an empty schema with rows from elsewhere, all or nothing. */
import { messageOf, RushesError, usageError } from '../../../errors.js'
import type { Verification } from '../account-store.js'
import { verificationOf } from '../shared-rows.js'
import { LEDGER_STATEMENTS } from './account-statements.js'
import { nameOf } from './connection-errors.js'
import { type Client, createClient } from './driver.js'
import { isConnectionLost } from './failures.js'
import { openSchema } from './open-schema.js'

/** A row by its columns. */
export type ImportedRow = Readonly<Record<string, unknown>>

export interface ImportedTable {
  readonly name: string
  readonly columns: readonly string[]
  /** Its pages, in an order in which every row comes after those that it refers to. */
  readonly pages: Iterable<readonly ImportedRow[]>
}

export interface ImportedSequence {
  /** Of an identity column or by itself, as `accounts.id` or `turns_served`. */
  readonly name: string
  readonly last: number
}

export interface Import {
  readonly url: string
  /** By which `wasImported` knows this import. */
  readonly id: string
  readonly tables: readonly ImportedTable[]
  readonly signal?: AbortSignal | undefined
  /** Read when all rows are written. */
  sequences(): readonly ImportedSequence[]
  /** Called with what the database has before the commit. Throws to undo everything. */
  check(verification: Verification): void
  /** Called last, when nothing but the commit is missing and the signal has no effect any more. */
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
export async function importTables(wanted: Import): Promise<Verification> {
  const { url, id, signal } = wanted
  await openSchema(url)
  return await onSchema(url, async (client) => {
    // Ends a statement that waits for a lock too.
    const stop = () => void client.end().catch(() => {})
    signal?.addEventListener('abort', stop, { once: true })
    try {
      const verification = await writeAll(client, wanted)
      wanted.check(verification)
      signal?.removeEventListener('abort', stop)
      signal?.throwIfAborted()
      wanted.beforeCommit()
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
async function writeAll(
  client: Client,
  { url, id, tables, sequences, signal }: Import,
): Promise<Verification> {
  await client.query(
    `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = ${MAX_IDLE_MS}`,
  )
  // No other process writes into these tables until the end.
  await client.query('LOCK TABLE accounts, keys, runs, credits, workers IN EXCLUSIVE MODE')
  await refuseData(client, url)
  // The files of the outputs are rows of their own here, and may be removed.
  await client.query('ALTER TABLE outputs DISABLE TRIGGER outputs_stored')
  for (const { name, columns, pages } of tables) {
    const list = columns.join(', ')
    // The types are those of the columns.
    const text = `INSERT INTO ${name} (${list}) SELECT ${list} FROM json_populate_recordset(null::${name}, $1)`
    for (const page of pages) {
      signal?.throwIfAborted()
      await client.query(text, [JSON.stringify(page)])
    }
  }
  for (const { name, last } of sequences()) await moveSequence(client, name, last)
  await client.query('UPDATE format SET migration = $1', [id])
  // What is checked at the commit otherwise.
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

async function moveSequence(client: Client, name: string, last: number): Promise<void> {
  if (last < 1) return
  const [table, column] = name.split('.')
  const sequence = column === undefined ? '$1' : 'pg_get_serial_sequence($1, $3)'
  await client.query(`SELECT setval(${sequence}, $2)`, [
    table,
    last,
    ...(column === undefined ? [] : [column]),
  ])
}
