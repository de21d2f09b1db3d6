/** The list of runs: loaded in pages, and updated by polling while it is shown. */
import { CONSOLE_PATHS, type RunSummary, type RunsPage, type RunsUpdate } from '../../protocol/console.js'
import { nextReadNumber, request, setBalance } from '../api.js'
import { type Action, useAction } from '../resource.js'
import { createStore, useStore } from '../store.js'
import { type PollResult, usePolling } from './polling.js'
import {
  isFinished,
  listOfPage,
  type RunList,
  unfinishedIds,
  withHead,
  withOlder,
  withUpdate,
} from './run-list.js'
import { type Filters, isFiltered, isSameFilter, stillMatches } from './runs-filters.js'
import { idsInView } from './runs-view.js'

/** The last shown list. Kept on other pages, for the back button and for the links to the newer and older run. */
interface Feed {
  readonly filters: Filters
  readonly list: RunList
}

export const feedStore = createStore<Feed | undefined>(undefined)

const PAGE_SIZE = 100
/** Maximum number of pages of new runs to load after the tab was hidden. If there are more, reload the list. */
const MAX_CATCH_UP_PAGES = 50

const readPage = (filters: Filters, signal?: AbortSignal, before?: string): Promise<RunsPage> =>
  request<RunsPage>('GET', CONSOLE_PATHS.runs, {
    query: { ...filters, before, limit: PAGE_SIZE },
    ...(signal !== undefined && { signal }),
  })

const beginList = (filters: Filters, page: RunsPage): void =>
  feedStore.set(() => ({ filters, list: listOfPage(page) }))

/** Changes the list. Does nothing if the filters have changed since. */
const changeList = (filters: Filters, change: (list: RunList) => RunList): void =>
  feedStore.set((feed) =>
    feed !== undefined && isSameFilter(feed.filters, filters) ? { filters, list: change(feed.list) } : feed,
  )

export interface LiveRuns {
  /** Undefined until the first response. If `isStale`, this is the list of the previous filters. */
  readonly list: RunList | undefined
  readonly isStale: boolean
  /** Error of the last poll. The poll is retried. */
  readonly error: unknown
  /** Polls now. */
  retry(): void
  /** Loads the next page. */
  readonly older: Action<[]>
}

export function useLiveRuns(filters: Filters): LiveRuns {
  const deps = [filters.status, filters.kind, filters.model, filters.key, filters.search]
  const feed = useStore(feedStore)
  const isStale = feed === undefined || !isSameFilter(feed.filters, filters)
  const { error, retry } = usePolling({ ask: (signal) => refresh(filters, signal) }, deps)
  const older = useAction(readOlder, { name: `older ${deps}`, onMissedError: () => undefined })
  return { list: feed?.list, isStale, error, retry, older }
}

async function readOlder(): Promise<void> {
  const { filters, list } = feedStore.get() ?? {}
  const before = list?.next ?? null
  if (filters === undefined || before === null) return
  const page = await readPage(filters, undefined, before)
  changeList(filters, (now) => withOlder(now, page, before))
}

/** Loads the list, or its changes if it is loaded. */
async function refresh(filters: Filters, signal: AbortSignal): Promise<PollResult> {
  const feed = feedStore.get()
  if (feed === undefined || !isSameFilter(feed.filters, filters))
    beginList(filters, await readPage(filters, signal))
  else await update(filters, feed.list, signal)
  return feedStore.get()?.list.runs.every(isFinished) ? 'finished' : 'unfinished'
}

async function update(filters: Filters, list: RunList, signal: AbortSignal): Promise<void> {
  const ids = unfinishedIds(list.runs, idsInView).join(',')
  const query = { ids, after: list.latest }
  const read = nextReadNumber()
  const news = await request<RunsUpdate>('GET', CONSOLE_PATHS.updates, { query, signal })
  setBalance(news.balance, read)
  if (!isFiltered(filters)) {
    const added = await allAdded(news, list, signal)
    if (added === undefined) beginList(filters, await readPage(filters, signal))
    else changeList(filters, (current) => withUpdate(current, { ...news, added }))
    return
  }
  changeList(filters, (current) => {
    // Keep `latest` until the first page has been read: if that fails, the next poll must find the new runs again.
    const changed = withUpdate(current, { ...news, added: [], latest: current.latest })
    return { ...changed, runs: changed.runs.filter((run) => stillMatches(filters, run)) }
  })
  // Only the service knows which new runs match the filter. With a status filter, a run that is not in the list may
  // match now, so always read the first page.
  if (news.added.length === 0 && filters.status === undefined) return
  const head = await readPage(filters, signal)
  changeList(filters, (current) => withHead(current, head))
}

/** Returns all new runs, without a gap to the loaded ones. Undefined if there are too many pages. */
async function allAdded(
  { added, next }: RunsUpdate,
  list: RunList,
  signal: AbortSignal,
): Promise<readonly RunSummary[] | undefined> {
  const known = new Set(list.runs.map(({ id }) => id))
  const all = [...added]
  let before = next
  for (let pages = 0; before !== null; pages++) {
    if (pages === MAX_CATCH_UP_PAGES) return undefined
    const page: RunsPage = await readPage({}, signal, before)
    const fresh = page.runs.filter(({ id }) => !known.has(id))
    all.push(...fresh)
    before = fresh.length < page.runs.length ? null : page.next
  }
  return all
}

/** Loads the newest runs for the links to the newer and older run, if a run's page was opened by its URL. */
export async function readFirstRuns(signal: AbortSignal): Promise<void> {
  if (feedStore.get() !== undefined) return
  const page = await readPage({}, signal)
  feedStore.set((feed) => feed ?? { filters: {}, list: listOfPage(page) })
}
