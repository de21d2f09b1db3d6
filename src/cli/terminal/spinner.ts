/** The text of the spinner: a line for the command, and above it one line for each run when there are several. Pure. */
import { printable, shortened } from '../../protocol/text.js'
import { formatBytes, formatDuration } from '../../protocol/units.js'
import { statusText } from './format.js'
import { columnsOf, cutToColumns } from './text-width.js'

export interface TransferProgress {
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
}

/** What is known of the runs that a command waits for. */
export interface Board {
  /** Number of runs that the command waits for. */
  readonly runs: number
  /** Status of each run by its id, in the order in which the first statuses arrived. */
  readonly statuses: Map<string, string>
  /** The runs that have not ended, with their status and how far they are. */
  readonly live: Map<string, string>
  readonly amounts: Map<string, TransferProgress>
  /** How far the only run is, for example `40 %`. Empty if unknown, or with several runs. */
  detail: string
  ended: number
  /** Current activity that no status shows, such as waiting for a service that is down. */
  activity: string | undefined
}

/** Maximum number of runs with a line. Further runs are shown as a count. */
const MAX_ROWS = 8
/** Columns for the spinner, two spaces and one free column: some terminals wrap when the last column is filled. */
const SPINNER_COLUMNS = 4
const DEFAULT_COLUMNS = 80

export interface Screen {
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/**
 * Returns a line for each run when there are several, with a final line end. The lines take at most half of the screen,
 * because lines that have scrolled away cannot be redrawn.
 */
export function rowsText(
  { live, runs }: Pick<Board, 'live' | 'runs'>,
  { columns = DEFAULT_COLUMNS, rows = 24 }: Screen,
): string {
  if (runs === 1) return ''
  const shown = [...live].slice(0, Math.min(MAX_ROWS, Math.max(0, Math.floor(rows / 2) - 2)))
  const hidden = live.size - shown.length
  const width = Math.max(1, columns - SPINNER_COLUMNS)
  return [
    ...shown.map(([run, status]) => `  ${rowText(printable(run), printable(status), width)}\n`),
    ...(hidden > 0 ? [`  and ${hidden} more\n`] : []),
  ].join('')
}

/** Formats the line of a run. A long name is shortened before the status. */
function rowText(run: string, status: string, width: number): string {
  const end = cutToColumns(status, Math.max(1, Math.floor(width / 2)))
  const left = width - columnsOf(end) - 2
  return left < 1 ? cutToColumns(status, width) : `${cutToColumns(run, left)}  ${end}`
}

/**
 * Returns one line that fits the terminal, with the most important part first. A wrapped line would leave parts on the
 * screen when the window is resized.
 */
export function spinnerText(board: Board, elapsedMs: number, columns = DEFAULT_COLUMNS) {
  const room = columns - SPINNER_COLUMNS
  const time = formatDuration(elapsedMs)
  const left = room - time.length - 1
  return left < 1
    ? { text: '', time: cutToColumns(time, Math.max(1, room)) }
    : { text: cutToColumns(textOf(board), left), time }
}

function textOf({ statuses, detail, runs, ended, activity, amounts }: Board): string {
  const doing = amounts.size === 0 ? activity : transferText([...amounts.values()])
  const [id = ''] = statuses.keys()
  const known = statusText(statuses, runs, detail)
  const parts =
    runs === 1 ? [known, doing, shortened(printable(id), 60)] : [`${ended} of ${runs} done`, doing, known]
  return parts.filter(Boolean).join(' · ') || 'starting'
}

/** For example `downloading 25 % of 12.3 MiB`, or only the received bytes when a length is unknown. */
function transferText(amounts: readonly TransferProgress[]): string {
  const sum = (of: (amount: TransferProgress) => number) => amounts.reduce((all, each) => all + of(each), 0)
  const received = sum(({ receivedBytes }) => receivedBytes)
  const total = sum(({ totalBytes = Number.NaN }) => totalBytes)
  if (!(total > 0)) return `downloading ${formatBytes(received)}`
  return `downloading ${Math.floor(Math.min(1, received / total) * 100)} % of ${formatBytes(total)}`
}
