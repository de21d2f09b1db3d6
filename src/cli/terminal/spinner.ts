/** What stands on a terminal while a command waits, pure: a line for the whole, and above it one for each of several runs. */
import { printable, shortened } from '../../protocol/text.js'
import { sayDuration } from '../flags/duration.js'
import { columnsOf, cutToColumns } from './columns.js'
import { type Amount, type Board, counted, sayBytes, sayElapsed, sayUsual } from './progress-lines.js'

/** So many runs are shown above the line; the rest is a number. */
const MAX_ROWS = 8

/** The spinner, a space on either side, and one column that stays free: some terminals wrap as soon as the last is filled. */
const SPINNER_COLUMNS = 4
const USUAL_COLUMNS = 80
const BAR_WIDTH = 20

export interface Screen {
  readonly columns: number | undefined
  readonly rows: number | undefined
}

/**
 * For a terminal, where several runs are under way: a line for what each of them does, ending with a line end. Never more
 * than half of the screen, since what has scrolled away cannot be drawn over.
 */
export function rowsText(live: ReadonlyMap<string, string>, runs: number, screen: Screen): string {
  if (runs === 1) return ''
  const most = Math.min(MAX_ROWS, Math.max(0, Math.floor((screen.rows ?? 24) / 2) - 2))
  const shown = [...live].slice(0, most)
  const width = Math.max(1, (screen.columns ?? USUAL_COLUMNS) - 4)
  const rows = shown.map(([run, status]) => `  ${rowText(printable(run), printable(status), width)}\n`)
  const more = live.size - shown.length
  return [...rows, ...(more > 0 ? [`  and ${more} more\n`] : [])].join('')
}

/** Of a name that is too long the end goes: what the run is doing is what the row is for. */
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
 * One line of the terminal, whatever its width: what is worth least goes first, and only then is something cut. A line that
 * wraps leaves its halves behind when the window changes its size.
 */
export function spinnerText(board: Board, elapsedMs: number, columns = USUAL_COLUMNS): SpinnerText {
  const room = columns - SPINNER_COLUMNS
  const time = sayDuration(elapsedMs)
  const withUsual =
    board.usual === undefined || board.expectedMs !== undefined
      ? sayElapsed(elapsedMs, board.expectedMs)
      : `${time} (${sayUsual(board.usual)})`
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

/** The same at ever less length. */
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
  const counts = shown(counted(statuses.values()))
  return [joined(done, counts, long), joined(done, counts, short), joined(done, short), done]
}

/** `[#####---------------] 25 % of 12.3 MiB`, or just how much when the length is not known. */
export function transferText(amount: Amount): string {
  const share = shareOf(amount)
  if (share === undefined) return shareText(amount)
  const full = Math.round(share * BAR_WIDTH)
  return `downloading [${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${Math.floor(share * 100)} % of ${sayBytes(amount.totalBytes ?? 0)}`
}

/** `downloading 25 %`. */
function shareText(amount: Amount): string {
  const share = shareOf(amount)
  return `downloading ${share === undefined ? sayBytes(amount.receivedBytes) : `${Math.floor(share * 100)} %`}`
}

const shareOf = ({ receivedBytes, totalBytes }: Amount): number | undefined =>
  totalBytes === undefined || totalBytes === 0 ? undefined : Math.min(1, receivedBytes / totalBytes)
