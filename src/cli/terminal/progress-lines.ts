/** What progress says, pure: usual times, counts, amounts, the sign of life. */
import { printable, shortened } from '../../protocol/text.js'
import { sayDuration } from '../flags/duration.js'
import { amount } from './amount.js'

export interface Board {
  /** Status of each run by its id, in the order in which they were first seen. */
  readonly statuses: ReadonlyMap<string, string>
  /** How many runs the command is about. */
  readonly runs: number
  readonly ended: number
  /** Runs that exist, whether or not a look has shown them. */
  readonly created: number
  /** What is done where no run's status says it: `creating`. */
  readonly activity: string | undefined
  /** What has come of all downloads together; undefined before the first byte. */
  readonly amount: Amount | undefined
  /** How long runs of this model have taken here; undefined when too few were seen, or several models are at work. */
  readonly usual: UsualTime | undefined
  /** How long the whole command will take; undefined when nobody knows. */
  readonly expectedMs?: number | undefined
}

/** `12 s`, or `12 s of about 1 min 40 s`; what takes longer than it was expected to is expected no more. */
export const sayElapsed = (elapsedMs: number, expectedMs: number | undefined): string =>
  expectedMs === undefined || elapsedMs >= expectedMs
    ? sayDuration(elapsedMs)
    : `${sayDuration(elapsedMs)} of about ${sayDuration(expectedMs)}`

export interface UsualTime {
  /** The middle half of the runs lies between these. */
  readonly fromMs: number
  readonly toMs: number
}

/** `usually 40 s`, or `usually 35 s to 1 min 10 s` where that says more. */
export function sayUsual({ fromMs, toMs }: UsualTime): string {
  // Rounded up: nothing takes 0 s.
  const [from, to] = [fromMs, toMs].map((ms) => sayDuration(Math.max(1, Math.ceil(ms / 1_000)) * 1_000))
  return from === to ? `usually ${from}` : `usually ${from} to ${to}`
}

/** `2 succeeded, 1 queued`. */
export const counted = (statuses: Iterable<string>): string => {
  const counts = new Map<string, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ')
}

export function signOfLife(board: Board, elapsedMs: number): string {
  const { statuses, runs, ended, created, usual } = board
  const [only] = statuses.values()
  const known =
    shortened(printable(runs === 1 ? (only ?? '') : counted(statuses.values())), 60) ||
    (created > 0 ? 'not seen yet' : 'not created yet')
  const elapsed = sayElapsed(elapsedMs, board.expectedMs)
  const details = [known, elapsed, ...(usual === undefined ? [] : [sayUsual(usual)])]
  return `still waiting for ${runs - ended} of ${amount(runs, 'run')} (${details.join(', ')})`
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB'] as const

/** `12.3 MiB`. */
export function sayBytes(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return unit === 0 ? `${bytes} B` : `${(bytes / 1024 ** unit).toFixed(1)} ${UNITS[unit]}`
}

export interface Amount {
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
}

/** The total is undefined as soon as one of the lengths is not known. */
export function sumOf(amounts: Iterable<Amount>): Amount {
  let receivedBytes = 0
  let totalBytes: number | undefined = 0
  for (const amount of amounts) {
    receivedBytes += amount.receivedBytes
    totalBytes =
      totalBytes === undefined || amount.totalBytes === undefined ? undefined : totalBytes + amount.totalBytes
  }
  return { receivedBytes, totalBytes }
}
