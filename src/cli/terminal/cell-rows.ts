/** Rows of cells: tab-separated for a pipe, aligned for a terminal. */

export const tabRow = (cells: readonly string[]): string => cells.join('\t')

/**
 * The width of each column except the last, which is not padded. Empty when a row would be wider than the terminal: padded
 * and wrapped, it would be harder to read.
 */
export function widthsOf(
  rows: readonly (readonly string[])[],
  maxColumns = Number.POSITIVE_INFINITY,
): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: Math.max(0, columns - 1) }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.every((row) => alignedRow(row, widths).length <= maxColumns) ? widths : []
}

export const alignedRow = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd()
