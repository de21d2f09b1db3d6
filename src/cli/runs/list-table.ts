/**
 * Formats the runs of the journal as a table for a terminal. Widths are in columns, because some characters take two.
 */
import type { JournalRun } from '../../journal/index.js'
import { printable } from '../../protocol/text.js'
import { formatAgo } from '../terminal/format.js'
import type { Style } from '../terminal/style.js'
import { alignedRow, widthsOf } from '../terminal/table.js'
import { cutToColumns } from '../terminal/text-width.js'
import { listCells } from './run-cells.js'

export interface TableOptions {
  readonly nowMs: number
  readonly columns: number
  readonly style: Style
}

const HEADER = ['RUN', 'STATUS', 'KIND', 'MODEL', 'CREATED', 'WHERE', 'LABELS', 'PROMPT']
const GAP = '  '
/** Width of the prompt, in columns, for which other columns are left out. */
const COMFORTABLE_PROMPT_COLUMNS = 30
/** Minimum width of the prompt, in columns. With less room, the prompt is left out. */
const MIN_PROMPT_COLUMNS = 10
const MAX_LABEL_COLUMNS = 24

/** Indexes of the columns that a narrow terminal leaves out. Id and status always stay. */
const [KIND, MODEL, CREATED, WHERE, LABELS] = [2, 3, 4, 5, 6]

/**
 * Returns the indexes of the shown columns. Leaves out the least important columns until the prompt has enough room.
 */
function selectColumns(
  widths: readonly number[],
  columns: number,
  { hasOneAddress, hasLabels }: { readonly hasOneAddress: boolean; readonly hasLabels: boolean },
): readonly number[] {
  const others = hasOneAddress ? [WHERE, KIND, MODEL, CREATED] : [KIND, MODEL, CREATED, WHERE]
  const room = (visible: readonly number[]) =>
    columns - visible.reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0)
  let visible = widths.map((_, at) => at).filter((at) => hasLabels || at !== LABELS)
  for (const at of [LABELS, ...others])
    if (room(visible) < COMFORTABLE_PROMPT_COLUMNS) visible = visible.filter((each) => each !== at)
  return visible
}

/** Text of the column WHERE: `local`, or the address without its scheme. */
const addressText = ({ address }: JournalRun): string => printable(address.replace(/^https?:\/\//, ''))

export function listTable(
  runs: readonly JournalRun[],
  { nowMs, columns, style }: TableOptions,
): readonly string[] {
  const rows = runs.map((run) => {
    const [id = '', status = '', kind = '', model = '', , prompt = ''] = listCells(run)
    const labels = cutToColumns(run.labels.map(printable).join(', '), MAX_LABEL_COLUMNS)
    return [id, status, kind, model, formatAgo(nowMs - run.createdAtMs), addressText(run), labels, prompt]
  })
  const widths = widthsOf([HEADER, ...rows])
  const hasOneAddress = new Set(runs.map(addressText)).size === 1
  const hasLabels = runs.some(({ labels }) => labels.length > 0)
  const visible = selectColumns(widths, columns, { hasOneAddress, hasLabels })
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
