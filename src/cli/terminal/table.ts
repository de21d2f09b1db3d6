import { alignedRow, tabRow, widthsOf } from './cell-rows.js'
import type { Output } from './output.js'

/** How the rows of a `list` command are written. */
export interface ListFormat<Row> {
  readonly header: readonly string[]
  cells(row: Row): readonly string[]
  json(row: Row): object
}

/** With `--json` an object a line, else a table. */
export function printList<Row>(
  out: Output,
  rows: readonly Row[],
  { header, cells, json }: ListFormat<Row>,
): void {
  if (out.mode.json) for (const row of rows) out.json(json(row))
  else printTable(out, header, rows.map(cells))
}

/** A table with a header for a terminal, tab-separated rows without one for a pipe. */
export function printTable(
  out: Output,
  header: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  if (!out.stdoutIsTerminal) {
    for (const row of rows) out.line(tabRow(row))
    return
  }
  const widths = widthsOf([header, ...rows], out.columns)
  out.line(out.style.out.bold(alignedRow(header, widths)))
  for (const row of rows) out.line(alignedRow(row, widths))
}
