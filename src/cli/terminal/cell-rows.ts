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

/** A last column narrower than this is not worth wrapping. */
const MIN_LAST_COLUMNS = 16

/** Wraps the words of the last column, so that the rows fit the terminal. Unchanged where the others leave too little room. */
export function wrapLastColumn(
  rows: readonly (readonly string[])[],
  maxColumns: number,
): readonly (readonly string[])[] {
  const others = widthsOf(rows)
  const room = maxColumns - others.reduce((sum, width) => sum + width + 2, 0)
  if (room < MIN_LAST_COLUMNS) return rows
  return rows.flatMap((row) => {
    const lines: string[] = ['']
    for (const word of (row.at(-1) ?? '').split(' ')) {
      const line = `${lines.at(-1)} ${word}`.trimStart()
      if (line.length <= room) lines.splice(-1, 1, line)
      else lines.push(word)
    }
    return lines.map((line, at) => [...row.slice(0, -1).map((cell) => (at === 0 ? cell : '')), line])
  })
}

export const alignedRow = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd()
