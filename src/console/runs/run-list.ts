/** The loaded runs, newest first. Merges pages without duplicates or gaps. */
import type { RunSummary, RunsPage } from '../../protocol/console.js'
import type { LocalStatus } from '../../protocol/run-state.js'

export interface RunList {
  readonly runs: readonly RunSummary[]
  /** Cursor of the next older page; null if all runs are loaded. */
  readonly next: string | null
}

export const isFinished = ({ status }: { readonly status: LocalStatus }): boolean =>
  status !== 'queued' && status !== 'processing'

export const listOfPage = ({ runs, next }: RunList): RunList => ({
  runs: withoutRepeats(runs),
  next,
})

/**
 * Appends the page that follows the cursor `before`. If the list no longer ends there, returns it unchanged: the page
 * would leave a gap.
 */
export const withOlder = (list: RunList, page: RunsPage, before: string): RunList =>
  list.next === before ? { runs: withoutRepeats([...list.runs, ...page.runs]), next: page.next } : list

/**
 * Replaces the start of the list with the current first page, in which runs can appear and disappear. Keeps runs that are
 * older than the page, with their changes, and all runs if the page is empty but not the last one. A run that is the
 * same stays the same object, so that it is not drawn again.
 */
export function withHead(
  list: RunList,
  { runs, next, changed }: Omit<RunsPage, 'balance'>,
  isMatch: (run: RunSummary) => boolean = () => true,
): RunList {
  const before = new Map(list.runs.map((run) => [run.id, run]))
  const newer = (run: RunSummary): RunSummary => {
    const known = before.get(run.id)
    // A late response can show a finished run as unfinished.
    return known && (isSame(known, run) || (isFinished(known) && !isFinished(run))) ? known : run
  }
  const head = runs.map(newer)
  if (next === null) return listOfPage({ runs: head, next })
  const changes = new Map(changed.map((run) => [run.id, newer(run)]))
  const last = head.at(-1)
  const ids = new Set(head.map(({ id }) => id))
  // Only runs after the last common run can be older than the page.
  const overlap = list.runs.findLastIndex(({ id }) => ids.has(id))
  const rest = last === undefined ? list.runs : overlap === -1 ? [] : list.runs.slice(overlap + 1)
  const older = rest
    .filter((run) => last === undefined || run.created_at <= last.created_at)
    .map((run) => changes.get(run.id) ?? run)
  // If no older runs are kept, the list ends where the page ends.
  return {
    runs: withoutRepeats([...head, ...older.filter(isMatch)]),
    next: last === undefined || older.length > 0 ? list.next : next,
  }
}

/** Compares the fields that can change. Outputs change only together with the status. */
const isSame = (one: RunSummary, other: RunSummary): boolean =>
  one.status === other.status &&
  one.progress === other.progress &&
  one.queue_position === other.queue_position &&
  one.started_at === other.started_at &&
  one.finished_at === other.finished_at &&
  one.price === other.price &&
  one.is_refunded === other.is_refunded &&
  one.error?.code === other.error?.code

function withoutRepeats(runs: readonly RunSummary[]): readonly RunSummary[] {
  const seen = new Set<string>()
  return runs.filter(({ id }) => !seen.has(id) && seen.add(id))
}

/** Maximum number of runs in one status request. Keeps the URL below 8 KB. */
export const MAX_FOLLOWED = 100

/** Ids of the unfinished runs to poll, at most `MAX_FOLLOWED`. If there are more, those in view come first. */
export function unfinishedIds(
  runs: readonly RunSummary[],
  idsInView: () => ReadonlySet<string | undefined>,
): readonly string[] {
  const ids = runs.filter((run) => !isFinished(run)).map(({ id }) => id)
  if (ids.length <= MAX_FOLLOWED) return ids
  const shown = idsInView()
  return ids
    .toSorted((one, other) => Number(shown.has(other)) - Number(shown.has(one)))
    .slice(0, MAX_FOLLOWED)
}

/** Number of runs above the run `firstId`, which was the first run before; 0 if that run is not listed. */
export function countAbove(runs: readonly RunSummary[], firstId: string | undefined): number {
  const at = runs.findIndex(({ id }) => id === firstId)
  return at === -1 ? 0 : at
}

/** Ids of the next newer and next older run. Undefined at the ends of the list and for an unknown run. */
export function neighboursOf(
  runs: readonly RunSummary[],
  id: string,
): { readonly newer: string | undefined; readonly older: string | undefined } {
  const at = runs.findIndex((run) => run.id === id)
  return at === -1
    ? { newer: undefined, older: undefined }
    : { newer: runs[at - 1]?.id, older: runs[at + 1]?.id }
}
