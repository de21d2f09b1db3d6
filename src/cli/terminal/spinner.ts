/** The text of the spinner: a line for the command, and above it one line for each run when there are several. Pure. */
import { withProgress } from '../../protocol/run-state.js'
import { printable, shortened } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { formatDuration } from './format.js'
import { type Board, countByStatus, type TransferProgress } from './progress-lines.js'
import { columnsOf, cutToColumns } from './text-width.js'

/** Maximum number of runs with a line. Further runs are shown as a count. */
const MAX_ROWS = 8

/** Columns for the spinner, two spaces and one free column: some terminals wrap when the last column is filled. */
const SPINNER_COLUMNS = 4
const DEFAULT_COLUMNS = 80

export interface Screen {
  readonly columns: number | undefined
  readonly rows: number | undefined
}

/**
 * Returns a line for each run when there are several, with a final line end. The lines take at most half of the screen,
 * because lines that have scrolled away cannot be redrawn.
 */
export function rowsText(live: ReadonlyMap<string, string>, runs: number, screen: Screen): string {
  if (runs === 1) return ''
  const maxRows = Math.min(MAX_ROWS, Math.max(0, Math.floor((screen.rows ?? 24) / 2) - 2))
  const visibleRuns = [...live].slice(0, maxRows)
  const width = Math.max(1, (screen.columns ?? DEFAULT_COLUMNS) - 4)
  const rows = visibleRuns.map(([run, status]) => `  ${rowText(printable(run), printable(status), width)}\n`)
  const hiddenRuns = live.size - visibleRuns.length
  return [...rows, ...(hiddenRuns > 0 ? [`  and ${hiddenRuns} more\n`] : [])].join('')
}

/** Formats the line of a run. A long name is shortened before the status. */
function rowText(run: string, status: string, width: number): string {
  const statusText = cutToColumns(status, Math.max(1, Math.floor(width / 2)))
  const left = width - columnsOf(statusText) - 2
  return left < 1 ? cutToColumns(status, width) : `${cutToColumns(run, left)}  ${statusText}`
}

export interface SpinnerText {
  readonly text: string
  readonly time: string
}

/**
 * Returns one line that fits the terminal, with the most important part first. A wrapped line would leave parts on the
 * screen when the window is resized.
 */
export function spinnerText(board: Board, elapsedMs: number, columns = DEFAULT_COLUMNS): SpinnerText {
  const room = columns - SPINNER_COLUMNS
  const time = formatDuration(elapsedMs)
  const left = room - time.length - 1
  return left < 1
    ? { text: '', time: cutToColumns(time, Math.max(1, room)) }
    : { text: cutToColumns(textOf(board), left), time }
}

/** Returns the number of rows that wrapping adds to the text in a window of `columns`. */
export function addedRows(text: string, columns = DEFAULT_COLUMNS): number {
  if (columns < 1) return 0
  return text
    .split('\n')
    .reduce((sum, line) => sum + Math.max(0, Math.ceil(columnsOf(line) / columns) - 1), 0)
}

function textOf({ statuses, detail, runs, ended, activity, amount }: Board): string {
  const shorten = (text: string) => shortened(printable(text), 60)
  const doing = amount === undefined ? activity : transferText(amount)
  const [[id = '', status = ''] = []] = statuses
  const parts =
    runs === 1
      ? [shorten(withProgress(status, detail)), doing, shorten(id)]
      : [`${ended} of ${runs} done`, doing, shorten(countByStatus(statuses.values()))]
  return parts.filter(Boolean).join(' · ') || 'starting'
}

/** For example `downloading 25 % of 12.3 MiB`, or only the received bytes when the length is unknown. */
function transferText({ receivedBytes, totalBytes }: TransferProgress): string {
  if (totalBytes === undefined || totalBytes === 0) return `downloading ${formatBytes(receivedBytes)}`
  const percent = Math.floor(Math.min(1, receivedBytes / totalBytes) * 100)
  return `downloading ${percent} % of ${formatBytes(totalBytes)}`
}
