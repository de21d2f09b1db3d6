/** Rows of cells: tab-separated for a pipe, aligned for a terminal. */

export const tabRow = (cells: readonly string[]): string => cells.join('\t')

/** The width of each column but the last, which is not filled up. */
export function widthsOf(rows: readonly (readonly string[])[]): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: Math.max(0, columns - 1) }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
}

export const alignedRow = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd()
