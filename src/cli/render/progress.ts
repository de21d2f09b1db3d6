/** What progress says, pure: the spinner's text, the bar, the sign of life. */
import { printable, shortened } from '../../protocol/text.js'
import { sayDuration } from '../duration.js'

export interface Board {
  /** Status of each run by its id, in the order in which they were first seen. */
  readonly statuses: ReadonlyMap<string, string>
  /** How many runs the command is about. */
  readonly runs: number
  readonly ended: number
  /** Runs that exist, whether or not a look has shown them. */
  readonly created: number
  /** What is done where no run's status says it: `creating`, `downloading …`. */
  readonly activity: string | undefined
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

/** So many runs are shown above the line; the rest is a number. */
const MOST_ROWS = 8

/**
 * For a terminal, where several runs are under way: a line for what each of them does, ending with a line end. Never more
 * than half of the screen, since what has scrolled away cannot be drawn over.
 */
export function rowsText(live: ReadonlyMap<string, string>, runs: number, screen: Screen): string {
  if (runs === 1) return ''
  const most = Math.min(MOST_ROWS, Math.max(0, Math.floor((screen.rows ?? 24) / 2) - 2))
  const shown = [...live].slice(0, most)
  const width = Math.max(20, (screen.columns ?? 80) - 4)
  const rows = shown.map(([run, status]) => `  ${shortened(printable(`${run}  ${status}`), width)}\n`)
  const more = live.size - shown.length
  return [...rows, ...(more > 0 ? [`  and ${more} more\n`] : [])].join('')
}

export interface Screen {
  readonly columns: number | undefined
  readonly rows: number | undefined
}

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

const counted = (statuses: Iterable<string>): string => {
  const counts = new Map<string, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ')
}

/** One line: the status of the run, or how many are in which. */
export function boardLine({ statuses, runs, ended, activity }: Board): string {
  const [only] = statuses
  const shown = (text: string) => shortened(printable(text), 60)
  if (runs === 1) {
    const status = only === undefined ? undefined : `${shown(only[0])} ${shown(only[1])}`
    return [status, activity].filter((each) => each !== undefined).join(' · ') || 'starting'
  }
  return [`${ended} of ${runs} done`, shown(counted(statuses.values())), activity].filter(Boolean).join(' · ')
}

export function signOfLife(board: Board, elapsedMs: number): string {
  const { statuses, runs, ended, created, usual } = board
  const [only] = statuses.values()
  const known =
    shortened(printable(runs === 1 ? (only ?? '') : counted(statuses.values())), 60) ||
    (created > 0 ? 'not seen yet' : 'not created yet')
  const elapsed = sayElapsed(elapsedMs, board.expectedMs)
  const details = [known, elapsed, ...(usual === undefined ? [] : [sayUsual(usual)])]
  return `still waiting for ${runs - ended} of ${runs} ${runs === 1 ? 'run' : 'runs'} (${details.join(', ')})`
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

const BAR_WIDTH = 20

/** `[#####---------------] 25 % of 12.3 MiB`, or just how much when the length is not known. */
export function transferText(amounts: Iterable<Amount>): string {
  let received = 0
  let total: number | undefined = 0
  for (const amount of amounts) {
    received += amount.receivedBytes
    total = total === undefined || amount.totalBytes === undefined ? undefined : total + amount.totalBytes
  }
  if (total === undefined || total === 0) return `downloading ${sayBytes(received)}`
  const share = Math.min(1, received / total)
  const full = Math.round(share * BAR_WIDTH)
  return `downloading [${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${Math.floor(share * 100)} % of ${sayBytes(total)}`
}
