/** The line beside the spinner. Pure. */
import { shortened } from '../../protocol/text.js'
import { formatDuration } from '../../protocol/units.js'
import { statusText } from './format.js'
import { cutToColumns } from './text-width.js'

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
  /** How far the only run is, for example `40 %`. Empty if unknown, or with several runs. */
  detail: string
  ended: number
  /** Current activity that no status shows, such as a download, or waiting for a service that is down. */
  activity: string | undefined
}

/** Columns for the spinner, two spaces and one free column: some terminals wrap when the last column is filled. */
const SPINNER_COLUMNS = 4
const DEFAULT_COLUMNS = 80

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
    : { text: cutToColumns(boardText(board), left), time }
}

function boardText({ statuses, detail, runs, ended, activity }: Board): string {
  const [id = ''] = statuses.keys()
  const known = statusText(statuses, runs, detail)
  const parts =
    runs === 1 ? [known, activity, shortened(id, 60)] : [`${runs - ended} of ${runs} left`, activity, known]
  return parts.filter(Boolean).join(' · ') || 'starting'
}
