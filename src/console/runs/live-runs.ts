/** The list of runs: loaded in pages, and updated by polling while it is shown. */
import { CONSOLE_PATHS, type RunsPage } from '../../protocol/console.js'
import { nextReadNumber, request, setBalance } from '../api.js'
import { type PollResult, usePolling } from '../polling.js'
import { type Action, useAction } from '../resource.js'
import { createStore, useStore } from '../store.js'
import { isFinished, listOfPage, type RunList, unfinishedIds, withHead, withOlder } from './run-list.js'
import { type Filters, isSameFilter, stillMatches } from './runs-filters.js'
import { idsInView } from './runs-view.js'

/** The last shown list. Kept on other pages, for the back button and for the links to the newer and older run. */
interface Feed {
  readonly filters: Filters
  readonly list: RunList
}

export const feedStore = createStore<Feed | undefined>(undefined)

const PAGE_SIZE = 100

/** Reads a page, and the balance. `ids`: runs of other pages whose changes are read too. */
async function readPage(
  filters: Filters,
  { signal, ...more }: { before?: string; ids?: string; signal?: AbortSignal },
): Promise<RunsPage> {
  const read = nextReadNumber()
  const query = { ...filters, ...more, limit: PAGE_SIZE }
  const page = await request<RunsPage>('GET', CONSOLE_PATHS.runs, { query, ...(signal && { signal }) })
  setBalance(page.balance, read)
  return page
}

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
  const page = await readPage(filters, { before })
  changeList(filters, (now) => withOlder(now, page, before))
}

/** Reads the first page again, and the unfinished runs of the others. */
async function refresh(filters: Filters, signal: AbortSignal): Promise<PollResult> {
  const feed = feedStore.get()
  if (feed === undefined || !isSameFilter(feed.filters, filters)) {
    const page = await readPage(filters, { signal })
    feedStore.set(() => ({ filters, list: listOfPage(page) }))
  } else {
    const ids = unfinishedIds(feed.list.runs, idsInView).join(',')
    const page = await readPage(filters, { signal, ids })
    changeList(filters, (list) => withHead(list, page, (run) => stillMatches(filters, run)))
  }
  return feedStore.get()?.list.runs.every(isFinished) ? 'finished' : 'unfinished'
}

/** Loads the newest runs for the links to the newer and older run, if a run's page was opened by its URL. */
export async function readFirstRuns(signal: AbortSignal): Promise<void> {
  if (feedStore.get() !== undefined) return
  const page = await readPage({}, { signal })
  feedStore.set((feed) => feed ?? { filters: {}, list: listOfPage(page) })
}
