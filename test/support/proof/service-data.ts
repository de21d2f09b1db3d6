/** Data folder of a service, before and after a proof. */
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { expect } from 'vitest'
import { createPlace, type Place, rushes, serve } from '../binary.js'

/**
 * Creates a data folder by running a service, with one account for each number of keys. The accounts have many credits.
 */
export async function prepareData(
  place: Place,
  data: string,
  counts: readonly number[],
): Promise<readonly (readonly string[])[]> {
  const service = await serve(place, ['--data', data])
  const admin = async (...words: string[]) => {
    const { stdout, stderr } = await rushes(place, ['admin', ...words, '--data', data, '--json'])
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout)
  }
  const accounts: string[][] = []
  for (const [index, count] of counts.entries()) {
    await admin('account', 'create', `account-${index}`, '--balance', '1000000')
    const keys: string[] = []
    for (let n = 0; n < count; n++)
      keys.push((await admin('key', 'create', '--account', `account-${index}`)).api_key)
    accounts.push(keys)
  }
  service.process.kill('SIGTERM')
  await service.process.ended
  return accounts
}

/** Creates a place with a copy of the data. */
export function copiedData(from: string): { readonly place: Place; readonly data: string } {
  const place = createPlace()
  const data = join(place.home, 'data')
  cpSync(from, data, { recursive: true })
  return { place, data }
}

/** Reads the database with SQL, independently of the program. */
export function query<Row>(data: string, sql: string): readonly Row[] {
  const database = new Database(join(data, 'service.db'), { readonly: true })
  try {
    return database.prepare(sql).all() as Row[]
  } finally {
    database.close()
  }
}

/** Holds the write lock, like a backup or a user of `sqlite3`. Call the returned function to release it. */
export function lockDatabase(data: string): () => void {
  const other = new Database(join(data, 'service.db'))
  other.exec('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE')
  return () => {
    other.exec('ROLLBACK')
    other.close()
  }
}

interface Audit {
  /**
   * Output folders without a run. A crash between writing the last file and updating the database leaves them.
   * `--retain` removes them.
   */
  readonly orphanFolders: number
  readonly charges: number
  readonly refunds: number
}

/**
 * Checks the data after all runs have ended: the ledger is consistent; each accepted run was charged once, and refunded
 * if it failed; each file on disk belongs to a run. `accepted`: ids of creates with a 201 response.
 */
export async function audit(place: Place, data: string, accepted: readonly string[]): Promise<Audit> {
  const verified = await rushes(place, ['admin', 'verify', '--data', data])
  expect(verified, 'rushes admin verify').toMatchObject({ code: 0 })
  const runs = query<{ id: string; status: string }>(data, 'SELECT id, status FROM runs')
  expect(runs.filter(({ status }) => !['succeeded', 'failed'].includes(status))).toEqual([])
  const known = new Set(runs.map(({ id }) => id))
  expect(accepted.filter((id) => !known.has(id))).toEqual([])
  const entries = query<{ run_id: string; kind: string }>(
    data,
    "SELECT run_id, kind FROM credits WHERE kind <> 'added'",
  )
  const of = (kind: string) => entries.filter((entry) => entry.kind === kind).map(({ run_id }) => run_id)
  const failed = runs.filter(({ status }) => status === 'failed').map(({ id }) => id)
  expect([...of('charge')].sort()).toEqual([...known].sort())
  expect([...of('refund')].sort()).toEqual([...failed].sort())
  const outputs = query<{ token: string; run_id: string }>(data, 'SELECT token, run_id FROM outputs')
  const folders = readdirSync(join(data, 'outputs'))
  expect(outputs.filter(({ token }) => !folders.includes(token))).toEqual([])
  const tokens = new Set(outputs.map(({ token }) => token))
  return {
    orphanFolders: folders.filter((name) => !tokens.has(name)).length,
    charges: of('charge').length,
    refunds: failed.length,
  }
}
