/** Fills an empty schema with rows from elsewhere, all or nothing. */
import { usageError } from '../../../errors.js'
import type { Verification } from '../account-store.js'
import { verificationOf } from '../shared-rows.js'
import { LEDGER_STATEMENTS } from './account-statements.js'
import { nameOf } from './connection-errors.js'
import { type Client, createClient } from './driver.js'
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
  readonly tables: readonly ImportedTable[]
  /** Read when all rows are written. */
  sequences(): readonly ImportedSequence[]
  /** Called before the commit, with what the database has then. Throws to undo everything. */
  check(verification: Verification): Promise<void>
}

/** Throws `RushesError` (usage) when the database cannot be used, or has data already. */
export async function refuseFilled(url: string): Promise<void> {
  await openSchema(url)
  const client = await connect(url)
  try {
    await client.query('SET search_path = rushes')
    await refuseData(client, url)
  } finally {
    await client.end().catch(() => {})
  }
}

async function connect(url: string): Promise<Client> {
  const client = createClient(url)
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Throws as `refuseFilled` does. */
export async function importTables({ url, tables, sequences, check }: Import): Promise<Verification> {
  await openSchema(url)
  const client = await connect(url)
  try {
    await client.query('BEGIN')
    await client.query('SET LOCAL search_path = rushes')
    // No other process writes into these tables until the end.
    await client.query('LOCK TABLE accounts, keys, runs, credits, workers IN EXCLUSIVE MODE')
    await refuseData(client, url)
    for (const { name, columns, pages } of tables) {
      const list = columns.join(', ')
      // The types are those of the columns.
      const text = `INSERT INTO ${name} (${list}) SELECT ${list} FROM json_populate_recordset(null::${name}, $1)`
      for (const page of pages) await client.query(text, [JSON.stringify(page)])
    }
    for (const { name, last } of sequences()) await moveSequence(client, name, last)
    const results = []
    for (const { text } of LEDGER_STATEMENTS) results.push((await client.query(text)).rows)
    const verification = verificationOf(results)
    await check(verification)
    await client.query('COMMIT')
    return verification
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  } finally {
    await client.end().catch(() => {})
  }
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
