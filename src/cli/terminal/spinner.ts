/** The text of the spinner: a line for the command, and above it one for each of several runs. Pure. */

import { printable, shortened } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { formatDuration } from './format.js'
import {
  type Board,
  countByStatus,
  formatElapsed,
  formatTypicalDuration,
  type TransferProgress,
} from './progress-lines.js'
import { columnsOf, cutToColumns } from './text-width.js'

/** Runs beyond this are shown as a number. */
const MAX_ROWS = 8

/** The spinner, two spaces, and one free column: some terminals wrap when the last column is filled. */
const SPINNER_COLUMNS = 4
const DEFAULT_COLUMNS = 80
const BAR_WIDTH = 20

export interface Screen {
  readonly columns: number | undefined
  readonly rows: number | undefined
}

/**
 * A line for each of several runs, with a final line end. At most half of the screen, since lines that have scrolled away
 * cannot be redrawn.
 */
export function rowsText(live: ReadonlyMap<string, string>, runs: number, screen: Screen): string {
  if (runs === 1) return ''
  const most = Math.min(MAX_ROWS, Math.max(0, Math.floor((screen.rows ?? 24) / 2) - 2))
  const shown = [...live].slice(0, most)
  const width = Math.max(1, (screen.columns ?? DEFAULT_COLUMNS) - 4)
  const rows = shown.map(([run, status]) => `  ${rowText(printable(run), printable(status), width)}\n`)
  const more = live.size - shown.length
  return [...rows, ...(more > 0 ? [`  and ${more} more\n`] : [])].join('')
}

/** A long name is cut before the status is. */
function rowText(run: string, status: string, width: number): string {
  const shown = cutToColumns(status, Math.max(1, Math.floor(width / 2)))
  const left = width - columnsOf(shown) - 2
  return left < 1 ? cutToColumns(status, width) : `${cutToColumns(run, left)}  ${shown}`
}

export interface SpinnerText {
  readonly text: string
  readonly times: string
}

/**
 * One line that fits the terminal: the least important parts are left out first, then the text is cut. A wrapped line would
 * leave parts behind when the window is resized.
 */
export function spinnerText(board: Board, elapsedMs: number, columns = DEFAULT_COLUMNS): SpinnerText {
  const room = columns - SPINNER_COLUMNS
  const time = formatDuration(elapsedMs)
  const withUsual =
    board.typical === undefined || board.expectedMs !== undefined
      ? formatElapsed(elapsedMs, board.expectedMs)
      : `${time} (${formatTypicalDuration(board.typical)})`
  const [full = '', ...terser] = textsOf(board)
  const offers = [
    { text: full, times: withUsual },
    ...[full, ...terser].map((text) => ({ text, times: time })),
  ]
  const fitting = offers.find(({ text, times }) => columnsOf(`${text} ${times}`) <= room)
  if (fitting !== undefined) return fitting
  const left = room - time.length - 1
  return left < 1
    ? { text: '', times: cutToColumns(time, Math.max(1, room)) }
    : { text: cutToColumns(offers.at(-1)?.text ?? '', left), times: time }
}

/** The rows that wrapping adds to the text in a window of `columns`. */
export function addedRows(text: string, columns = DEFAULT_COLUMNS): number {
  if (columns < 1) return 0
  return text
    .split('\n')
    .reduce((sum, line) => sum + Math.max(0, Math.ceil(columnsOf(line) / columns) - 1), 0)
}

/** The longest text first. */
function textsOf({ statuses, runs, ended, activity, amount }: Board): readonly string[] {
  const joined = (...parts: readonly (string | undefined)[]) =>
    parts.filter((each) => each !== undefined && each !== '').join(' · ')
  const shown = (text: string) => shortened(printable(text), 60)
  const long = amount === undefined ? activity : transferText(amount)
  const short = amount === undefined ? activity : shareText(amount)
  if (runs === 1) {
    const [only] = statuses
    if (only === undefined) return [joined(long) || 'starting', joined(short) || 'starting']
    const [id, status] = only.map(shown) as [string, string]
    return [joined(`${id} ${status}`, long), joined(`${id} ${status}`, short), joined(status, short)]
  }
  const done = `${ended} of ${runs} done`
  const counts = shown(countByStatus(statuses.values()))
  return [joined(done, counts, long), joined(done, counts, short), joined(done, short), done]
}

/** `downloading [#####---------------] 25 % of 12.3 MiB`, or only the bytes when the length is unknown. */
export function transferText(amount: TransferProgress): string {
  const share = shareOf(amount)
  if (share === undefined) return shareText(amount)
  const full = Math.round(share * BAR_WIDTH)
  return (
    `downloading [${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${Math.floor(share * 100)} % of ` +
    `${formatBytes(amount.totalBytes ?? 0)}`
  )
}

/** `downloading 25 %`. */
function shareText(amount: TransferProgress): string {
  const share = shareOf(amount)
  return `downloading ${share === undefined ? formatBytes(amount.receivedBytes) : `${Math.floor(share * 100)} %`}`
}

const shareOf = ({ receivedBytes, totalBytes }: TransferProgress): number | undefined =>
  totalBytes === undefined || totalBytes === 0 ? undefined : Math.min(1, receivedBytes / totalBytes)
