import { alignedRow, tabRow, widthsOf } from './cell-rows.js'
import type { Output } from './output.js'

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
