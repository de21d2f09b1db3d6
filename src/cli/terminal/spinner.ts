/** The text of the spinner: a line for the command, and above it one line for each run when there are several. Pure. */
import { printable, shortened } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { formatDuration } from './format.js'
import {
  type Board,
  countByStatus,
  formatElapsed,
  formatTypicalDuration,
  type TransferProgress,
  withDetail,
} from './progress-lines.js'
import { columnsOf, cutToColumns } from './text-width.js'

/** Maximum number of runs with a line. Further runs are shown as a count. */
const MAX_ROWS = 8

/** Columns for the spinner, two spaces and one free column: some terminals wrap when the last column is filled. */
const SPINNER_COLUMNS = 4
const DEFAULT_COLUMNS = 80
const BAR_WIDTH = 20

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
  readonly times: string
}

/**
 * Returns one line that fits the terminal. The least important parts are left out first, then the text is shortened. A
 * wrapped line would leave parts on the screen when the window is resized.
 */
export function spinnerText(board: Board, elapsedMs: number, columns = DEFAULT_COLUMNS): SpinnerText {
  const room = columns - SPINNER_COLUMNS
  const time = formatDuration(elapsedMs)
  const withTypical =
    board.typical === undefined || board.expectedMs !== undefined
      ? formatElapsed(elapsedMs, board.expectedMs)
      : `${time} (${formatTypicalDuration(board.typical)})`
  const [full = '', ...shorter] = textsOf(board)
  const candidates = [
    { text: full, times: withTypical },
    ...[full, ...shorter].map((text) => ({ text, times: time })),
  ]
  const fitting = candidates.find(({ text, times }) => columnsOf(`${text} ${times}`) <= room)
  if (fitting !== undefined) return fitting
  const left = room - time.length - 1
  return left < 1
    ? { text: '', times: cutToColumns(time, Math.max(1, room)) }
    : { text: cutToColumns(candidates.at(-1)?.text ?? '', left), times: time }
}

/** Returns the number of rows that wrapping adds to the text in a window of `columns`. */
export function addedRows(text: string, columns = DEFAULT_COLUMNS): number {
  if (columns < 1) return 0
  return text
    .split('\n')
    .reduce((sum, line) => sum + Math.max(0, Math.ceil(columnsOf(line) / columns) - 1), 0)
}

/** Returns texts from the longest to the shortest. */
function textsOf({ statuses, detail, runs, ended, activity, amount }: Board): readonly string[] {
  const joined = (...parts: readonly (string | undefined)[]) =>
    parts.filter((each) => each !== undefined && each !== '').join(' · ')
  const shorten = (text: string) => shortened(printable(text), 60)
  const long = amount === undefined ? activity : transferText(amount)
  const short = amount === undefined ? activity : shareText(amount)
  if (runs === 1) {
    const [only] = statuses
    if (only === undefined) return [joined(long) || 'starting', joined(short) || 'starting']
    const [id, status] = [shorten(only[0]), shorten(withDetail(only[1], detail))]
    return [joined(`${id} ${status}`, long), joined(`${id} ${status}`, short), joined(status, short)]
  }
  const done = `${ended} of ${runs} done`
  const counts = shorten(countByStatus(statuses.values()))
  return [joined(done, counts, long), joined(done, counts, short), joined(done, short), done]
}

/**
 * For example `downloading [#####---------------] 25 % of 12.3 MiB`, or only the received bytes when the length is
 * unknown.
 */
export function transferText(amount: TransferProgress): string {
  const share = shareOf(amount)
  if (share === undefined) return shareText(amount)
  const full = Math.round(share * BAR_WIDTH)
  return (
    `downloading [${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${Math.floor(share * 100)} % of ` +
    `${formatBytes(amount.totalBytes ?? 0)}`
  )
}

/** For example `downloading 25 %`. */
function shareText(amount: TransferProgress): string {
  const share = shareOf(amount)
  return `downloading ${share === undefined ? formatBytes(amount.receivedBytes) : `${Math.floor(share * 100)} %`}`
}

const shareOf = ({ receivedBytes, totalBytes }: TransferProgress): number | undefined =>
  totalBytes === undefined || totalBytes === 0 ? undefined : Math.min(1, receivedBytes / totalBytes)
