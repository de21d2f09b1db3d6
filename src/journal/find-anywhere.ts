/** Runs whose address is not known to the caller, and earlier outputs by their link or their content. */
import type { OpenDatabase } from '../host/database.js'
import { FIND, fileOfRow, type JournalFile, type JournalRun, runOfRow } from './journal-run.js'

/** Goes from one address to the next in the index: a service has many runs, a machine few addresses. */
const ADDRESSES = `
  WITH RECURSIVE places (address) AS (
    SELECT min(address) FROM runs
    UNION ALL
    SELECT (SELECT min(address) FROM runs WHERE runs.address > places.address)
    FROM places WHERE places.address IS NOT NULL
  )
  SELECT address FROM places WHERE address IS NOT NULL`

/** The newest run with this id of each address, the newest first. */
export const findAtEveryAddress = (db: OpenDatabase, id: string): readonly JournalRun[] =>
  db
    .all(ADDRESSES)
    // Not `all`: on a statement that `get` uses too, libsql returns rows of earlier values.
    .flatMap(({ address }) => {
      const row = db.get(FIND, String(address), id)
      return row === undefined ? [] : [runOfRow(row)]
    })
    .sort((one, other) => other.row - one.row)

/** The newest run at the address one of whose output links contains the text. Walks all runs. */
export function findByOutput(db: OpenDatabase, address: string, text: string): JournalRun | undefined {
  const row = db.get(
    `SELECT * FROM runs INDEXED BY runs_by_time WHERE address = ? AND instr(urls, ?) > 0
     ORDER BY created_at DESC LIMIT 1`,
    address,
    text,
  )
  return row === undefined ? undefined : runOfRow(row)
}

/** Where files with this content were downloaded to, the newest first. Walks all runs. */
export const pathsWithContent = (db: OpenDatabase, sha256: string): readonly string[] =>
  db
    .all(
      `SELECT files.path FROM runs INDEXED BY runs_by_time CROSS JOIN files ON files.row = runs.row
       WHERE files.sha256 = ? ORDER BY runs.created_at DESC`,
      sha256,
    )
    .map(({ path }) => String(path))

/** The files of all runs by the run's row, in the order in which they were downloaded. */
export function everyFile(db: OpenDatabase): ReadonlyMap<number, readonly JournalFile[]> {
  const byRow = new Map<number, JournalFile[]>()
  for (const row of db.all('SELECT * FROM files ORDER BY file')) {
    const files = byRow.get(Number(row.row))
    if (files === undefined) byRow.set(Number(row.row), [fileOfRow(row)])
    else files.push(fileOfRow(row))
  }
  return byRow
}
