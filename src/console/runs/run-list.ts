/** The loaded runs, the newest first. Pure: merges pages and updates without duplicates and gaps. */
import type { RunSummary, RunsPage, RunsUpdate } from '../../protocol/console.js'
import type { LocalStatus } from '../../protocol/run-state.js'

export interface RunList {
  readonly runs: readonly RunSummary[]
  /** The cursor of older runs; null at the end. */
  readonly next: string | null
  /** The newest run of the account when this was read, for the next update. */
  readonly latest: string
}

export const isFinished = ({ status }: { readonly status: LocalStatus }): boolean =>
  status === 'succeeded' || status === 'failed'

export const listOfPage = ({ runs, next, latest }: RunsPage): RunList => ({
  runs: withoutRepeats(runs),
  next,
  latest,
})

/** Appends the page after `before` if the list still ends there, since there would be a gap otherwise. */
export const withOlder = (list: RunList, page: RunsPage, before: string): RunList =>
  list.next === before
    ? { ...list, runs: withoutRepeats([...list.runs, ...page.runs]), next: page.next }
    : list

/** Puts new runs first, and replaces changed ones. The update must have all new runs: `next` is null. */
export function withUpdate(list: RunList, { changed, added, latest }: RunsUpdate): RunList {
  const runs = withChanges(list.runs, changed)
  return { ...list, latest, runs: added.length === 0 ? runs : withoutRepeats([...added, ...runs]) }
}

/**
 * Replaces all runs that are as new as the last one of a filter's first page, since runs enter and leave a filter in the
 * middle. Older runs stay, and all of them when the page is empty.
 */
export function withHead(list: RunList, page: RunsPage): RunList {
  const last = page.runs.at(-1)
  if (page.next === null) return listOfPage(page)
  if (last === undefined) return { ...list, latest: page.latest }
  const ids = new Set(page.runs.map(({ id }) => id))
  // Runs after the last common one are older than the page.
  const overlap = list.runs.findLastIndex(({ id }) => ids.has(id))
  const older = overlap === -1 ? [] : list.runs.slice(overlap + 1).filter((run) => isOlder(run, last))
  // Without older runs, the list continues after the page.
  const next = older.length === 0 ? page.next : list.next
  return { runs: withoutRepeats([...page.runs, ...older]), next, latest: page.latest }
}

const isOlder = (one: RunSummary, other: RunSummary): boolean => one.created_at <= other.created_at

/** A finished run stays finished, even after a late response. Returns the same list without a difference. */
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

/** Compares the fields that change; outputs and error change with the status. */
const isSame = (one: RunSummary, other: RunSummary): boolean =>
  one.status === other.status &&
  one.started_at === other.started_at &&
  one.finished_at === other.finished_at &&
  one.price === other.price

function withoutRepeats(runs: readonly RunSummary[]): readonly RunSummary[] {
  const seen = new Set<string>()
  return runs.filter(({ id }) => !seen.has(id) && seen.add(id))
}

/** Per request, so that its URL stays below 8 KB. */
export const MAX_FOLLOWED = 100

/** The unfinished runs to poll, visible ones first. */
export function unfinishedIds(
  runs: readonly RunSummary[],
  { first, end }: { readonly first: number; readonly end: number } = { first: 0, end: runs.length },
): readonly string[] {
  const shown = runs.slice(first, end)
  const others = [...runs.slice(0, first), ...runs.slice(end)]
  return [...shown, ...others]
    .filter((run) => !isFinished(run))
    .slice(0, MAX_FOLLOWED)
    .map(({ id }) => id)
}

/** The number of runs before the first run of an earlier list. */
export function countAbove(runs: readonly RunSummary[], firstId: string | undefined): number {
  const at = runs.findIndex(({ id }) => id === firstId)
  return at === -1 ? 0 : at
}

/** The ids of the runs above and below; undefined at an end, and for an unknown run. */
export function neighboursOf(
  runs: readonly RunSummary[],
  id: string,
): { readonly newer: string | undefined; readonly older: string | undefined } {
  const at = runs.findIndex((run) => run.id === id)
  return at === -1
    ? { newer: undefined, older: undefined }
    : { newer: runs[at - 1]?.id, older: runs[at + 1]?.id }
}
