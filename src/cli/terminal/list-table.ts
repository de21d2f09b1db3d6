/** The runs of the journal as a table for a terminal. Widths are in columns, since some characters take two. */
import type { JournalRun } from '../../journal/index.js'
import { printable } from '../../protocol/text.js'
import { formatAgo } from './format.js'
import { listCells } from './run-cells.js'
import type { Style } from './style.js'
import { columnsOf, cutToColumns } from './text-width.js'

export interface TableOptions {
  readonly nowMs: number
  readonly columns: number
  readonly style: Style
}

const HEADER = ['RUN', 'STATUS', 'KIND', 'MODEL', 'CREATED', 'WHERE', 'PROMPT']
const GAP = '  '
/** Columns are left out until the prompt has this much room. */
const COMFORTABLE_PROMPT_COLUMNS = 30
/** With less room, the prompt is left out. */
const MIN_PROMPT_COLUMNS = 10

const padded = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - columnsOf(text)))

/** Columns that a narrow terminal leaves out, least important first. Id and status always stay. */
const [KIND, MODEL, CREATED, WHERE] = [2, 3, 4, 5]

/** The columns that leave room for the prompt. */
function shownOf(widths: readonly number[], columns: number, isOnePlace: boolean): readonly number[] {
  const expendable = isOnePlace ? [WHERE, KIND, MODEL, CREATED] : [KIND, MODEL, CREATED, WHERE]
  const room = (shown: readonly number[]) =>
    columns - shown.reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0)
  let shown = widths.map((_, at) => at)
  for (const at of expendable)
    if (room(shown) < COMFORTABLE_PROMPT_COLUMNS) shown = shown.filter((each) => each !== at)
  return shown
}

/** `local`, or the address without its scheme. */
const placeOf = ({ address }: JournalRun): string => printable(address.replace(/^https?:\/\//, ''))

export function listTable(
  runs: readonly JournalRun[],
  { nowMs, columns, style }: TableOptions,
): readonly string[] {
  const rows = runs.map((run) => {
    const [id = '', status = '', kind = '', model = '', , prompt = ''] = listCells(run)
    return [id, status, kind, model, formatAgo(nowMs - run.createdAtMs), placeOf(run), prompt]
  })
  const widths = HEADER.slice(0, -1).map((title, at) =>
    Math.max(columnsOf(title), ...rows.map((row) => columnsOf(row[at] ?? ''))),
  )
  const isOnePlace = new Set(runs.map(placeOf)).size === 1
  const shown = shownOf(widths, columns, isOnePlace)
  const left = columns - shown.reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0)
  const line = (cells: readonly string[], colour: (status: string) => string): string =>
    [
      ...shown.map((at) => {
        const cell = padded(cells[at] ?? '', widths[at] ?? 0)
        return at === 1 ? colour(cell) : cell
      }),
      ...(left < MIN_PROMPT_COLUMNS ? [] : [cutToColumns(cells.at(-1) ?? '', left)]),
    ]
      .join(GAP)
      .trimEnd()
  return [
    style.dim(line(HEADER, (title) => title)),
    ...rows.map((row, at) => line(row, (status) => colourOf(runs[at], style)(status))),
  ]
}

function colourOf(run: JournalRun | undefined, style: Style): (text: string) => string {
  if (run?.phase === 'succeeded') return style.green
  if (run?.phase === 'failed') return style.red
  return run?.phase === 'unconfirmed' ? style.yellow : (text) => text
}
