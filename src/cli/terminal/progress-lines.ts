/** Texts for the progress of a command: durations, counts, bytes. Pure. */
import { withProgress } from '../../protocol/run-state.js'
import { printable, shortened } from '../../protocol/text.js'
import { formatDuration, plural } from './format.js'

export interface Board {
  /** Status of each run by its id, in the order in which the first statuses arrived. */
  readonly statuses: ReadonlyMap<string, string>
  /** How far the only run is, for example `40 %`. Empty if unknown, or with several runs. */
  readonly detail: string
  /** Number of runs that the command waits for. */
  readonly runs: number
  readonly ended: number
  /** Number of runs that exist, with or without a known status. */
  readonly created: number
  /** Current activity that no status shows, for example `creating`. */
  readonly activity: string | undefined
  /** Sum of all downloads; undefined before the first byte. */
  readonly amount: TransferProgress | undefined
}

/** For example `2 succeeded, 1 queued`. */
export const countByStatus = (statuses: Iterable<string>): string => {
  const counts = new Map<string, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ')
}

export function stillWaitingLine(board: Board, elapsedMs: number): string {
  const { statuses, detail, runs, ended, created } = board
  const [only = ''] = statuses.values()
  const known =
    shortened(printable(runs === 1 ? withProgress(only, detail) : countByStatus(statuses.values())), 60) ||
    (created > 0 ? 'status unknown' : 'not created yet')
  return `still waiting for ${runs - ended} of ${plural(runs, 'run')} (${known}, ${formatDuration(elapsedMs)})`
}

export interface TransferProgress {
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
}

/** Sums the downloads. The total is undefined when the length of a download is unknown. */
export function sumOf(amounts: Iterable<TransferProgress>): TransferProgress {
  let receivedBytes = 0
  let totalBytes: number | undefined = 0
  for (const amount of amounts) {
    receivedBytes += amount.receivedBytes
    totalBytes =
      totalBytes === undefined || amount.totalBytes === undefined ? undefined : totalBytes + amount.totalBytes
  }
  return { receivedBytes, totalBytes }
}
