/**
 * Keeps the latest state of rows in memory, so that a command can write them again if the file was removed or is
 * corrupt.
 */
import type { OpenDatabase, Row, SqlValue } from '../host/database.js'
import { ownerText } from '../host/process-lock.js'
import { freeKey, type NamedCreate, prepareCreates } from './creates.js'
import { FIND } from './journal-run.js'

interface SavedRow {
  readonly run: Row
  readonly files: readonly Row[]
}

export interface SavedRows {
  readonly runs: readonly SavedRow[]
  /** Creates that were not sent. */
  readonly prepared: readonly NamedCreate[]
}

/** Maximum number of rows in memory. A session that lasts for weeks can have more runs. */
const MAX_SAVED = 10_000

/** Creates the memory of the rows that this command writes. */
export function createOwnRows(db: OpenDatabase, most = MAX_SAVED) {
  const changing = new Map<number, SavedRow>()
  const ended = new Map<number, SavedRow>()
  const prepared = new Map<string, NamedCreate>()
  const nameOf = ({ address, requestId }: NamedCreate) => `${address} ${requestId}`

  return {
    remember(row: number): void {
      changing.delete(row)
      ended.delete(row)
      const [run] = db.all('SELECT * FROM runs WHERE row = ?', row)
      if (run === undefined) return
      const rows = run.phase === 'succeeded' || run.phase === 'failed' ? ended : changing
      rows.set(row, { run, files: db.all('SELECT * FROM files WHERE row = ?', row) })
      if (changing.size + ended.size <= most) return
      const full = ended.size > 0 ? ended : changing
      for (const [oldest] of full) return void full.delete(oldest)
    },
    addPrepared: (create: NamedCreate): void => void prepared.set(nameOf(create), create),
    removePrepared: (create: NamedCreate): void => void prepared.delete(nameOf(create)),
    saved: (): SavedRows => ({
      runs: [...changing.values(), ...ended.values()],
      prepared: [...prepared.values()],
    }),
  }
}

/**
 * Adds the missing rows, with their old numbers if these are free. Returns the numbers. `owner`: id of this process's
 * lock, which may differ from the id in the lost file.
 */
export const restoreRows = (
  db: OpenDatabase,
  saved: SavedRows,
  owner: () => string,
  nowMs: number,
): readonly number[] =>
  db.transaction(() => {
    const rows = saved.runs.flatMap((each) => restoreRow(db, each, owner) ?? [])
    for (const { address, requestId } of saved.prepared) prepareCreates(db, address, [requestId], nowMs)
    return rows
  })

function restoreRow(db: OpenDatabase, { run, files }: SavedRow, owner: () => string): number | undefined {
  const { key, id, address, phase } = run
  // The row exists: another process that uses the same run has restored it.
  if (typeof id === 'string' && db.get(FIND, String(address), id) !== undefined) return undefined
  if (db.get('SELECT 1 FROM runs WHERE row = ? AND key = ?', Number(run.row), key as SqlValue) !== undefined)
    return undefined
  const rowIsTaken = db.get('SELECT 1 FROM runs WHERE row = ?', Number(run.row)) !== undefined
  const keyIsTaken = typeof key === 'string' && db.get('SELECT 1 FROM runs WHERE key = ?', key) !== undefined
  // Do not restore the row with another number or key. The sending process then finds no matching row, and writes a new
  // intent.
  if (phase === 'sending' && (rowIsTaken || keyIsTaken)) return undefined
  const row = insert(db, 'runs', {
    ...run,
    ...(phase === 'sending' && { started_at: ownerText(owner()) }),
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
    ...(Object.values(values) as SqlValue[]),
  )
  return Number(inserted?.row)
}
