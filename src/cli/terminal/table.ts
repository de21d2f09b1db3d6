/** Tables: columns for a terminal, or rows separated by tabs for a pipe. */
import { printable } from '../../protocol/text.js'
import { tabRow, wrapWords } from './format.js'
import type { Output } from './output.js'

type Row = readonly string[]

interface TableOptions {
  /** Titles of the columns that are shown only if they fit, the most important one first. */
  readonly optional?: readonly string[]
  /** Whether the last column is shortened to the width of the terminal. Without it, its words are wrapped. */
  readonly isCut?: boolean
}

/** Format of the rows of a `list` command. */
interface ListFormat<Item> extends TableOptions {
  readonly header: Row
  /** A value that is null or undefined is shown as `-`. */
  cells(item: Item): readonly (string | number | null | undefined)[]
  json(item: Item): object
}

/** Prints one JSON object per line with `--json`, else a table. */
export async function printList<Item>(
  out: Output,
  items: readonly Item[],
  { header, cells, json, ...options }: ListFormat<Item>,
): Promise<void> {
  if (out.mode.json) for (const item of items) out.json(json(item))
  else {
    const rows = items.map((item) => cells(item).map((cell) => printable(String(cell ?? '-'))))
    await printTable(out, header, rows, options)
  }
}

/** A column of these cells is left out. */
const EMPTY = ['', '-']
const GAP = 2
const DEFAULT_COLUMNS = 80
/** Width of the last column for which optional columns are left out. */
const COMFORTABLE_COLUMNS = 30
/** Minimum width to which the last column is shortened or wrapped. */
const MIN_LAST_COLUMNS = 10

/**
 * Prints a table with a header, unless that is empty, for a terminal, without its empty columns; or all rows without a
 * header for a pipe.
 */
export async function printTable(
  out: Output,
  header: Row,
  rows: readonly Row[],
  options: TableOptions = {},
): Promise<void> {
  const lines = out.stdoutIsTerminal
    ? await alignedLines(header, rows, out.columns || DEFAULT_COLUMNS, options)
    : rows.map(tabRow)
  for (const [at, line] of lines.entries())
    out.line(out.stdoutIsTerminal && at === 0 && header.length > 0 ? out.style.out.bold(line) : line)
}

async function alignedLines(
  header: Row,
  rows: readonly Row[],
  limit: number,
  { optional = [], isCut = false }: TableOptions,
): Promise<readonly string[]> {
  // Takes 15 ms to load.
  const { columnsOf, cutToColumns } = await import('./text-width.js')
  const table = header.length === 0 ? rows : [header, ...rows]
  const widths = (table[0] ?? []).map((_, at) =>
    table.reduce((width, row) => Math.max(width, columnsOf(row[at] ?? '')), 0),
  )
  const before = (columns: readonly number[]) =>
    columns.slice(0, -1).reduce((sum, at) => sum + (widths[at] ?? 0) + GAP, 0)
  const fits = (columns: readonly number[]) =>
    before(columns) + Math.min(widths[columns.at(-1) ?? 0] ?? 0, COMFORTABLE_COLUMNS) <= limit
  const useful = widths.flatMap((_, at) => (rows.every((row) => EMPTY.includes(row[at] ?? '')) ? [] : [at]))
  let shown = useful.filter((at) => !optional.includes(header[at] ?? ''))
  for (const at of optional.map((title) => header.indexOf(title)).filter((each) => useful.includes(each))) {
    const more = [...shown, at].sort((one, other) => one - other)
    if (fits(more)) shown = more
  }
  const left = limit - before(shown)
  const room = left >= MIN_LAST_COLUMNS ? left : isCut ? MIN_LAST_COLUMNS : Number.POSITIVE_INFINITY
  const padded = (cell = '', at = 0) => cell + ' '.repeat((widths[at] ?? 0) - columnsOf(cell))
  return table.flatMap((row) => {
    const last = row[shown.at(-1) ?? 0] ?? ''
    const lines = isCut ? [cutToColumns(last, room)] : wrapWords(last, room)
    return lines.map((text, line) =>
      [...shown.slice(0, -1).map((at) => padded(line === 0 ? row[at] : '', at)), text]
        .join(' '.repeat(GAP))
        .trimEnd(),
    )
  })
}
