/** The loaded runs, newest first. Merges pages and updates without duplicates or gaps. */
import type { RunSummary, RunsPage, RunsUpdate } from '../../protocol/console.js'
import type { LocalStatus } from '../../protocol/run-state.js'

export interface RunList {
  readonly runs: readonly RunSummary[]
  /** Cursor of the next older page; null if all runs are loaded. */
  readonly next: string | null
  /** Cursor for the next update: the account's newest run at the time of the last response. */
  readonly latest: string
}

export const isFinished = ({ status }: { readonly status: LocalStatus }): boolean =>
  status !== 'queued' && status !== 'processing'

export const listOfPage = ({ runs, next, latest }: RunsPage): RunList => ({
  runs: withoutRepeats(runs),
  next,
  latest,
})

/**
 * Appends the page that follows the cursor `before`. If the list no longer ends there, returns it unchanged: the page
 * would leave a gap.
 */
export const withOlder = (list: RunList, page: RunsPage, before: string): RunList =>
  list.next === before
    ? { ...list, runs: withoutRepeats([...list.runs, ...page.runs]), next: page.next }
    : list

/** Adds new runs at the start and replaces changed runs. The update must be complete (`next` is null). */
export function withUpdate(list: RunList, { changed, added, latest }: RunsUpdate): RunList {
  const runs = withChanges(list.runs, changed)
  return { ...list, latest, runs: added.length === 0 ? runs : withoutRepeats([...added, ...runs]) }
}

/**
 * Replaces the start of a filtered list with the current first page. With a filter, runs can appear or disappear
 * anywhere in the list when their status changes. Keeps runs that are older than the page, and all runs if the page is
 * empty but not the last one.
 */
export function withHead(list: RunList, page: RunsPage): RunList {
  const last = page.runs.at(-1)
  if (page.next === null) return listOfPage(page)
  if (last === undefined) return { ...list, latest: page.latest }
  const ids = new Set(page.runs.map(({ id }) => id))
  // Only runs after the last common run can be older than the page.
  const overlap = list.runs.findLastIndex(({ id }) => ids.has(id))
  const older = overlap === -1 ? [] : list.runs.slice(overlap + 1).filter((run) => isOlder(run, last))
  // If no older runs are kept, the list ends where the page ends.
  const next = older.length === 0 ? page.next : list.next
  return { runs: withoutRepeats([...page.runs, ...older]), next, latest: page.latest }
}

const isOlder = (one: RunSummary, other: RunSummary): boolean => one.created_at <= other.created_at

/**
 * Replaces changed runs. Ignores a late response that shows a finished run as unfinished. Returns the same array if
 * nothing has changed.
 */
function withChanges(runs: readonly RunSummary[], changed: readonly RunSummary[]): readonly RunSummary[] {
  const byId = new Map(changed.map((run) => [run.id, run]))
  let isChanged = false
  const merged = runs.map((run) => {
    const now = byId.get(run.id)
    if (now === undefined || (isFinished(run) && !isFinished(now)) || isSame(run, now)) return run
    isChanged = true
    return now
  })
  return isChanged ? merged : runs
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
