/** The list of runs as the page keeps it: read by pages, and kept up to date while it is shown. */
import { useCallback, useRef, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunSummary, type RunsPage, type RunsUpdate } from '../../protocol/console.js'
import { request } from '../api.js'
import { setBalance } from '../session.js'
import { onUserChange } from '../session-store.js'
import { createStore, useStore } from '../store.js'
import { type Filters, isFiltered, isSameFilter, stillMatches } from './filters.js'
import { type Found, usePolling } from './polling.js'
import type { RowRange } from './row-window.js'
import {
  isFinished,
  listOfPage,
  type RunList,
  unfinishedIds,
  withHead,
  withOlder,
  withUpdate,
} from './run-list.js'

/** Stays while other pages are shown: for the way back, and for the runs before and after one. */
interface Feed {
  readonly filters: Filters
  readonly list: RunList
}

export const feedStore = createStore<Feed | undefined>(undefined)

onUserChange(() => feedStore.set(undefined))

const PAGE_SIZE = 100
/** Of new runs that came while the page was hidden. Beyond them the list begins anew. */
const MAX_CATCH_UP_PAGES = 50

const readPage = (filters: Filters, signal: AbortSignal | undefined, before?: string): Promise<RunsPage> =>
  request<RunsPage>('GET', CONSOLE_PATHS.runs, {
    query: { ...filters, before, limit: PAGE_SIZE },
    ...(signal !== undefined && { signal }),
  })

/** Changes the list, unless another one was begun meanwhile. */
function changeList(filters: Filters, change: (list: RunList) => RunList): void {
  const feed = feedStore.get()
  if (feed !== undefined && isSameFilter(feed.filters, filters))
    feedStore.set({ filters, list: change(feed.list) })
}

export interface LiveRuns {
  /** Undefined until the first answer. With `isStale` it is that of the filters before. */
  readonly list: RunList | undefined
  readonly isStale: boolean
  /** Of the last request for the newest runs. */
  readonly error: unknown
  readonly olderError: unknown
  readOlder(): void
}

/** `shown`: the rows that are in view. */
export function useLiveRuns(filters: Filters, shown: () => RowRange): LiveRuns {
  const feed = useStore(feedStore)
  const [error, setError] = useState<unknown>()
  const [olderError, setOlderError] = useState<unknown>()
  const isReading = useRef(false)
  const isStale = feed === undefined || !isSameFilter(feed.filters, filters)

  usePolling(
    async (signal) => {
      try {
        const found = await refresh(filters, shown(), signal)
        setError(undefined)
        return found
      } catch (thrown) {
        if (!signal.aborted) setError(thrown)
        throw thrown
      }
    },
    [filters.status, filters.kind, filters.key, filters.search],
  )

  const readOlder = useCallback(async () => {
    const current = feedStore.get()
    if (current === undefined || current.list.next === null || isReading.current) return
    isReading.current = true
    setOlderError(undefined)
    try {
      const page = await readPage(current.filters, undefined, current.list.next)
      changeList(current.filters, (list) => withOlder(list, page))
    } catch (thrown) {
      setOlderError(thrown)
    }
    isReading.current = false
  }, [])

  return { list: feed?.list, isStale, error: isStale ? error : undefined, olderError, readOlder }
}

/** Reads the list, or what is new in it. */
async function refresh(filters: Filters, shown: RowRange, signal: AbortSignal): Promise<Found> {
  const feed = feedStore.get()
  if (feed === undefined || !isSameFilter(feed.filters, filters)) {
    const page = await readPage(filters, signal)
    feedStore.set({ filters, list: listOfPage(page) })
  } else await update(filters, feed.list, shown, signal)
  return feedStore.get()?.list.runs.every(isFinished) ? 'finished' : 'unfinished'
}

async function update(filters: Filters, list: RunList, shown: RowRange, signal: AbortSignal): Promise<void> {
  const ids = unfinishedIds(list.runs, shown).join(',')
  const query = { ids, after: list.latest }
  const news = await request<RunsUpdate>('GET', CONSOLE_PATHS.updates, { query, signal })
  setBalance(news.balance)
  if (!isFiltered(filters)) {
    const added = await allAdded(news, list, signal)
    if (added === undefined) feedStore.set({ filters, list: listOfPage(await readPage(filters, signal)) })
    else changeList(filters, (current) => withUpdate(current, { ...news, added }))
    return
  }
  changeList(filters, (current) => {
    const changed = withUpdate(current, { ...news, added: [] })
    return { ...changed, runs: changed.runs.filter((run) => stillMatches(filters, run)) }
  })
  // Which of the new runs match is known to the service alone, and a run that has ended may now match the status.
  if (news.added.length === 0 && filters.status === undefined) return
  const head = await readPage(filters, signal)
  changeList(filters, (current) => withHead(current, head))
}

/** The new runs without a gap; undefined when there are too many. */
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

/** For the runs before and after one that was opened by its address. */
export async function readFirstRuns(signal: AbortSignal): Promise<void> {
  if (feedStore.get() !== undefined) return
  const page = await readPage({}, signal)
  if (feedStore.get() === undefined) feedStore.set({ filters: {}, list: listOfPage(page) })
}
