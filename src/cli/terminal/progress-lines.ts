/** Texts for the progress of a command: durations, counts, bytes. Pure. */
import { withProgress } from '../../protocol/run-state.js'
import { printable, shortened } from '../../protocol/text.js'
import { formatDuration, formatEstimate, plural } from './format.js'

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
  /** Typical duration of the model's earlier runs. Undefined with too few runs, or with several models. */
  readonly typical: UsualRange | undefined
  /** Expected duration of the whole command; undefined when unknown. */
  readonly expectedMs?: number | undefined
}

/** For example `12 s of about 1 min 40 s`, or `12 s` when the expected time is unknown or has passed. */
export const formatElapsed = (elapsedMs: number, expectedMs: number | undefined): string =>
  expectedMs === undefined || elapsedMs >= expectedMs
    ? formatDuration(elapsedMs)
    : `${formatDuration(elapsedMs)} of about ${formatEstimate(expectedMs)}`

export interface UsualRange {
  /** The middle half of the runs took between `fromMs` and `toMs`. */
  readonly fromMs: number
  readonly toMs: number
}

/** For example `usually 40 s`, `usually 2–4 s`, `usually 35 s to 1 min 10 s`. */
export function formatTypicalDuration({ fromMs, toMs }: UsualRange): string {
  const [from, to] = [formatEstimate(fromMs), formatEstimate(toMs)]
  return from === to ? `usually ${from}` : `usually ${rangeOf(from, to)}`
}

/** Formats a range. Two times in seconds share the unit. */
function rangeOf(from: string, to: string): string {
  const [number, unit] = from.split(' ')
  return unit === 's' && /^\d+ s$/.test(to) ? `${number}–${to}` : `${from} to ${to}`
}

/** For example `2 succeeded, 1 queued`. */
export const countByStatus = (statuses: Iterable<string>): string => {
  const counts = new Map<string, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ')
}

export function stillWaitingLine(board: Board, elapsedMs: number): string {
  const { statuses, detail, runs, ended, created, typical } = board
  const [only = ''] = statuses.values()
  const known =
    shortened(printable(runs === 1 ? withProgress(only, detail) : countByStatus(statuses.values())), 60) ||
    (created > 0 ? 'status unknown' : 'not created yet')
  const elapsed = formatElapsed(elapsedMs, board.expectedMs)
  const details = [known, elapsed, ...(typical === undefined ? [] : [formatTypicalDuration(typical)])]
  return `still waiting for ${runs - ended} of ${plural(runs, 'run')} (${details.join(', ')})`
}

/** For example `3 runs: 2 succeeded, 1 failed`. */
export function endText({ statuses, runs }: Board): string {
  const counts = shortened(printable(countByStatus(statuses.values())), 60)
  return `${plural(runs, 'run')}: ${counts || 'status unknown'}`
}

/** A status that a run has now. */
export interface RunStatus {
  readonly id: string
  /** Its name in the manifest. */
  readonly name: string | undefined
  readonly status: string
}

/** A line of `--progress json`: of one run whose status has changed, or of the whole command. */
export const progressJson = (board: Board, elapsedMs: number, run?: RunStatus) => ({
  run: run?.id ?? null,
  name: run?.name ?? null,
  status: run?.status ?? null,
  total: board.runs,
  done: board.ended,
  activity: board.activity ?? null,
  received_bytes: board.amount?.receivedBytes ?? null,
  total_bytes: board.amount?.totalBytes ?? null,
  elapsed_ms: Math.round(elapsedMs),
  expected_ms: board.expectedMs === undefined ? null : Math.round(board.expectedMs),
})

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
