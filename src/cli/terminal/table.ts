import { alignedRow, tabRow, widthsOf, wrapLastColumn } from './cell-rows.js'
import type { Output } from './output.js'

/** How the rows of a `list` command are written. */
export interface ListFormat<Row> {
  readonly header: readonly string[]
  /** Titles of columns that a narrow terminal leaves out, least important first. */
  readonly expendable?: readonly string[]
  cells(row: Row): readonly string[]
  json(row: Row): object
}

/** With `--json` an object a line, else a table. */
export function printList<Row>(
  out: Output,
  rows: readonly Row[],
  { header, cells, json, expendable }: ListFormat<Row>,
): void {
  if (out.mode.json) for (const row of rows) out.json(json(row))
  else printTable(out, header, rows.map(cells), expendable)
}

/** A table with a header for a terminal, tab-separated rows without one for a pipe. */
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
