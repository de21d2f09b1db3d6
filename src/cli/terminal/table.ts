/** Formats rows of cells, aligned in columns for a terminal. Commands load it only there: text widths take 15 ms to load. */
import { tabRow, wrapWords } from './format.js'
import type { Output } from './output.js'
import { columnsOf } from './text-width.js'

/** Format of the rows of a `list` command. */
export interface ListFormat<Row> {
  readonly header: readonly string[]
  /** Titles of columns that a narrow terminal leaves out, least important first. */
  readonly expendable?: readonly string[]
  cells(row: Row): readonly string[]
  json(row: Row): object
}

/** Prints one JSON object per line with `--json`, else a table. */
export function printList<Row>(
  out: Output,
  rows: readonly Row[],
  { header, cells, json, expendable }: ListFormat<Row>,
): void {
  if (out.mode.json) for (const row of rows) out.json(json(row))
  else printTable(out, header, rows.map(cells), expendable)
}

/** Prints a table with a header for a terminal, or rows separated by tabs without a header for a pipe. */
export function printTable(
  out: Output,
  header: readonly string[],
  rows: readonly (readonly string[])[],
  expendable: readonly string[] = [],
): void {
  if (!out.stdoutIsTerminal) {
    for (const row of rows) out.line(tabRow(row))
    return
  }
  let table = [header, ...rows]
  let widths = widthsOf(table, out.columns)
  for (const title of expendable) {
    if (widths.length > 0) break
    const at = table[0]?.indexOf(title)
    table = table.map((row) => row.filter((_, column) => column !== at))
    widths = widthsOf(table, out.columns)
  }
  if (widths.length === 0 && out.columns !== undefined) {
    table = [...wrapLastColumn(table, out.columns)]
    widths = widthsOf(table, out.columns)
  }
  for (const [at, row] of table.entries())
    out.line(at === 0 ? out.style.out.bold(alignedRow(row, widths)) : alignedRow(row, widths))
}

/**
 * Returns the width of each column except the last, which is not padded. Returns an empty list when a row would be
 * wider than the terminal, because padded rows that wrap are harder to read.
 */
export function widthsOf(
  rows: readonly (readonly string[])[],
  maxColumns = Number.POSITIVE_INFINITY,
): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: Math.max(0, columns - 1) }, (_, column) =>
    Math.max(...rows.map((row) => columnsOf(row[column] ?? ''))),
  )
  return rows.every((row) => columnsOf(alignedRow(row, widths)) <= maxColumns) ? widths : []
}

/** Minimum width of the last column for wrapping its words. */
const MIN_LAST_COLUMNS = 16

/**
 * Wraps the words of the last column so that the rows fit the terminal. Returns the rows unchanged when the other
 * columns leave too little room.
 */
function wrapLastColumn(
  rows: readonly (readonly string[])[],
  maxColumns: number,
): readonly (readonly string[])[] {
  const others = widthsOf(rows)
  const room = maxColumns - others.reduce((sum, width) => sum + width + 2, 0)
  if (room < MIN_LAST_COLUMNS) return rows
  return rows.flatMap((row) =>
    wrapWords(row.at(-1) ?? '', room).map((line, at) => [
      ...row.slice(0, -1).map((cell) => (at === 0 ? cell : '')),
      line,
    ]),
  )
}

export const alignedRow = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - columnsOf(cell))))
    .join('  ')
    .trimEnd()
