/**
 * Formats the runs of the journal as a table for a terminal. Widths are in columns, because some characters take two.
 */
import { basename } from 'node:path'
import type { JournalFile, JournalRun } from '../../journal/index.js'
import { printable } from '../../protocol/text.js'
import { formatAgo } from '../terminal/format.js'
import type { Style } from '../terminal/style.js'
import { alignedRow, widthsOf } from '../terminal/table.js'
import { cutToColumns } from '../terminal/text-width.js'
import { isOnDisk } from './journal-rows.js'
import { listCells } from './run-cells.js'

export interface TableOptions {
  readonly nowMs: number
  readonly columns: number
  readonly style: Style
  filesOf(run: JournalRun): readonly JournalFile[]
}

const HEADER = ['RUN', 'STATUS', 'NAME', 'KIND', 'MODEL', 'CREATED', 'WHERE', 'LABELS', 'FILE', 'PROMPT']
const GAP = '  '
/** Width of the prompt, in columns, for which other columns are left out. */
const COMFORTABLE_PROMPT_COLUMNS = 30
/** Minimum width of the prompt, in columns. With less room, the prompt is left out. */
const MIN_PROMPT_COLUMNS = 10
/** Maximum width of names, labels and files. */
const MAX_TEXT_COLUMNS = 24

/** Indexes of the columns that a narrow terminal leaves out, least important first. Id and status always stay. */
const [NAME, KIND, MODEL, CREATED, WHERE, LABELS, FILE] = [2, 3, 4, 5, 6, 7, 8]
const EXPENDABLE = [LABELS, KIND, MODEL, CREATED, FILE, WHERE, NAME]

/**
 * Returns the indexes of the shown columns. Leaves out empty columns, the place if all runs have the same, and the least
 * important columns until the prompt has enough room.
 */
function selectColumns(
  widths: readonly number[],
  columns: number,
  rows: readonly (readonly string[])[],
): readonly number[] {
  const room = (visible: readonly number[]) =>
    columns - visible.reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0)
  const isUseful = (at: number) =>
    at === WHERE
      ? new Set(rows.map((row) => row[at])).size > 1
      : ![NAME, LABELS, FILE].includes(at) || rows.some((row) => row[at] !== '')
  let visible = widths.map((_, at) => at).filter(isUseful)
  for (const at of EXPENDABLE)
    if (room(visible) < COMFORTABLE_PROMPT_COLUMNS) visible = visible.filter((each) => each !== at)
  return visible
}

/** The name of the first file that is still there, and the number of the others. */
function filesText(files: readonly JournalFile[]): string {
  const [first, ...others] = files.filter(isOnDisk)
  if (first === undefined) return ''
  const more = others.length === 0 ? '' : ` +${others.length}`
  return `${cutToColumns(printable(basename(first.path)), MAX_TEXT_COLUMNS - more.length)}${more}`
}

/** Text of the column WHERE: `local`, or the address without its scheme. */
const addressText = ({ address }: JournalRun): string => printable(address.replace(/^https?:\/\//, ''))

export function listTable(
  runs: readonly JournalRun[],
  { nowMs, columns, style, filesOf }: TableOptions,
): readonly string[] {
  const cut = (text: string) => cutToColumns(printable(text), MAX_TEXT_COLUMNS)
  const rows = runs.map((run) => {
    const [id = '', status = '', kind = '', model = '', , prompt = ''] = listCells(run)
    const created = formatAgo(nowMs - run.createdAtMs)
    const [name, labels] = [cut(run.name ?? ''), cut(run.labels.join(', '))]
    const file = filesText(filesOf(run))
    return [id, status, name, kind, model, created, addressText(run), labels, file, prompt]
  })
  const widths = widthsOf([HEADER, ...rows])
  const visible = selectColumns(widths, columns, rows)
  const visibleWidths = visible.map((at) => widths[at] ?? 0)
  const promptColumns = columns - visibleWidths.reduce((sum, width) => sum + width + GAP.length, 0)
  const line = (cells: readonly string[]): string => {
    const prompt = promptColumns < MIN_PROMPT_COLUMNS ? [] : [cutToColumns(cells.at(-1) ?? '', promptColumns)]
    return alignedRow([...visible.map((at) => cells[at] ?? ''), ...prompt], visibleWidths)
  }
  return [
    style.dim(line(HEADER)),
    ...rows.map(([id = '', status = '', ...others], at) =>
      line([id, colourOf(runs[at], style)(status), ...others]),
    ),
  ]
}

function colourOf(run: JournalRun | undefined, style: Style): (text: string) => string {
  if (run?.phase === 'succeeded') return style.green
  if (run?.phase === 'failed') return style.red
  return run?.phase === 'unconfirmed' ? style.yellow : (text) => text
}
