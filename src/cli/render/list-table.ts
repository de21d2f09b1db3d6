/** The runs of the journal as a table for a terminal: widths in columns, since some characters take two. */
import stringWidth from 'string-width'
import type { JournalRun } from '../../journal/index.js'
import type { Style } from '../style.js'
import { listCells } from './list.js'

export interface TableOptions {
  readonly nowMs: number
  readonly columns: number
  readonly style: Style
}

const HEADER = ['RUN', 'STATUS', 'KIND', 'MODEL', 'CREATED', 'PROMPT']
const GAP = '  '
/** Less of a prompt says nothing. */
const SHORTEST_PROMPT = 12

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** `3 min ago`. */
export function sayAgo(ms: number): string {
  const [size, unit] = UNITS.find(([each]) => ms >= each) ?? [1_000, 's']
  return ms < 1_000 ? 'now' : `${Math.floor(ms / size)} ${unit} ago`
}

/** At most so many columns, the last of them an ellipsis where something was cut. */
export function cutToColumns(text: string, most: number): string {
  if (stringWidth(text) <= most) return text
  let kept = ''
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += stringWidth(segment)
    if (width > most - 1) break
    kept += segment
  }
  return `${kept}…`
}

const padded = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - stringWidth(text)))

export function listTable(
  runs: readonly JournalRun[],
  { nowMs, columns, style }: TableOptions,
): readonly string[] {
  const rows = runs.map((run) => {
    const [id = '', status = '', kind = '', model = '', , prompt = ''] = listCells(run)
    return [id, status, kind, model, sayAgo(nowMs - run.createdAtMs), prompt]
  })
  const widths = HEADER.slice(0, -1).map((title, at) =>
    Math.max(stringWidth(title), ...rows.map((row) => stringWidth(row[at] ?? ''))),
  )
  const left = columns - widths.reduce((sum, width) => sum + width + GAP.length, 0)
  const line = (cells: readonly string[], colour: (status: string) => string): string =>
    [
      ...widths.map((width, at) =>
        at === 1 ? colour(padded(cells[at] ?? '', width)) : padded(cells[at] ?? '', width),
      ),
      cutToColumns(cells.at(-1) ?? '', Math.max(left, SHORTEST_PROMPT)),
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
