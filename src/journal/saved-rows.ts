/** Rows as they were last seen, so that a command can write its own again when the file was removed or is corrupt. */
import type { OpenDatabase, Row, Value } from '../host/database.js'
import { freeKey } from './creates.js'
import { FIND } from './journal-run.js'

export interface SavedRow {
  readonly run: Row
  readonly files: readonly Row[]
}

export function savedRow(db: OpenDatabase, row: number): SavedRow | undefined {
  const [run] = db.all('SELECT * FROM runs WHERE row = ?', row)
  return run && { run, files: db.all('SELECT * FROM files WHERE row = ?', row) }
}

/** Adds the rows that are missing, with their old numbers where these are free. Returns the numbers. */
export const restoreRows = (db: OpenDatabase, saved: readonly SavedRow[]): readonly number[] =>
  db.transaction(() => saved.flatMap((each) => restoreRow(db, each) ?? []))

function restoreRow(db: OpenDatabase, { run, files }: SavedRow): number | undefined {
  const { key, id, address, phase } = run
  // It is there already: another process that works with the same run was faster.
  if (typeof id === 'string' && db.get(FIND, String(address), id) !== undefined) return undefined
  if (db.get('SELECT 1 FROM runs WHERE row = ? AND key = ?', Number(run.row), key as Value) !== undefined)
    return undefined
  const rowIsTaken = db.get('SELECT 1 FROM runs WHERE row = ?', Number(run.row)) !== undefined
  const keyIsTaken = typeof key === 'string' && db.get('SELECT 1 FROM runs WHERE key = ?', key) !== undefined
  // Who sends it holds number and key, finds that they are not its own, and writes a new intent.
  if (phase === 'sending' && (rowIsTaken || keyIsTaken)) return undefined
  const row = insert(db, 'runs', {
    ...run,
    row: rowIsTaken ? null : run.row,
    key: keyIsTaken ? freeKey(db) : key,
  })
  for (const file of files) insert(db, 'files', { ...file, file: null, row })
  return row
}

function insert(db: OpenDatabase, table: string, values: Row): number {
  const columns = Object.keys(values)
  const inserted = db.get(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')}) RETURNING row`,
    ...(Object.values(values) as Value[]),
  )
  return Number(inserted?.row)
}
