/** Page with all runs of the account, newest first. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Button, LinkButton } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { EmptyState, ErrorNotice, PollingNotice, Skeleton } from '../components/notice.js'
import { Page } from '../components/page.js'
import { plural } from '../format.js'
import type { Action } from '../resource.js'
import { linkTo, navigate } from '../routes.js'
import { CancelRuns } from './cancel-run.js'
import { type LiveRuns, useLiveRuns } from './live-runs.js'
import { countAbove, isFinished } from './run-list.js'
import { type Filters, filtersOf, isFiltered, isSameFilter, RunsFilters } from './runs-filters.js'
import { RunsView, ViewSwitch } from './runs-view.js'

export interface RunsPageProps {
  readonly query: Readonly<Record<string, string>>
}

/** Last scroll position, restored when the user returns from a run. */
let lastPosition: { readonly filters: Filters; readonly top: number } | undefined

export function RunsPage({ query }: RunsPageProps) {
  const filters = filtersOf(query)
  const live = useLiveRuns(filters)
  const onChange = (next: Filters, isTyping = false) =>
    navigate(linkTo('runs', { query: { ...next } }), { replace: isTyping })
  useScrollPosition(filters, live)
  return (
    <Page
      title="Runs"
      actions={
        <>
          <ViewSwitch />
          <LinkButton kind="primary" icon="plus" href={linkTo('new')}>
            New run
          </LinkButton>
        </>
      }
    >
      <div class="runs">
        <RunsFilters filters={filters} onChange={onChange} />
        <Results filters={filters} live={live} />
      </div>
    </Page>
  )
}

interface ResultsProps {
  readonly filters: Filters
  readonly live: LiveRuns
}

/** Scroll position below which the newest runs are in view. */
const TOP_PX = 200

function Results({ filters, live }: ResultsProps) {
  const { list, isStale, error, retry, older } = live
  const [seen, setSeen] = useState<string>()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const choose = useCallback(
    (id: string, isChosen: boolean) =>
      setChosen((now) => new Set(isChosen ? [...now, id] : [...now].filter((each) => each !== id))),
    [],
  )
  const runs = list?.runs
  const first = runs?.[0]?.id
  useEffect(() => {
    const onScroll = () => {
      if (scrollY < TOP_PX) setSeen(first)
    }
    onScroll()
    window.addEventListener('scroll', onScroll, { passive: true })
    return () => window.removeEventListener('scroll', onScroll)
  }, [first])
  if (error !== undefined && (runs === undefined || isStale))
    return <ErrorNotice error={error} onRetry={retry} />
  if (runs === undefined) return <SkeletonRows />
  // A page can be empty even if older runs match: the service searches a limited number of runs per request.
  if (runs.length === 0 && !isStale && list?.next === null)
    return isFiltered(filters) ? <NoMatch /> : <NoRuns />
  const unfinished = runs.filter((run) => !isFinished(run))
  const countNew = isStale ? 0 : countAbove(runs, seen)
  return (
    <>
      <PollingNotice error={error} retry={retry} />
      <p class="visually-hidden" role="status">
        {isStale ? 'Loading' : `${plural(runs.length, 'run')}${list?.next === null ? '' : ' and more'}`}
      </p>
      <div>
        <div class="runs-new" role="status">
          {countNew > 0 && (
            <Button kind="primary" size="small" onClick={() => scrollTo({ top: 0, behavior: 'instant' })}>
              {plural(countNew, 'new run')}
            </Button>
          )}
        </div>
        <CancelRuns
          runs={unfinished.filter(({ id }) => chosen.has(id))}
          count={unfinished.length}
          onChooseAll={() => setChosen(new Set(unfinished.map(({ id }) => id)))}
          onClear={() => setChosen(new Set())}
          onDone={retry}
        />
        <RunsView runs={runs} isStale={isStale} chosen={chosen} onChoose={choose} />
      </div>
      {list?.next != null && !isStale && (
        <Older key={list.next} action={older} isSearching={isFiltered(filters)} />
      )}
      <ErrorNotice error={older.error} onRetry={() => void older.run()} />
    </>
  )
}

interface OlderProps {
  readonly action: Action<[]>
  readonly isSearching: boolean
}

/** Button that loads the next page, also when the user scrolls near it. Has the cursor of the page as its key. */
function Older({ action, isSearching }: OlderProps) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const observer = new IntersectionObserver(
      // A slow browser reports several changes at once.
      (changes) => changes.some(({ isIntersecting }) => isIntersecting) && void action.run(),
      { rootMargin: '200%' },
    )
    if (place.current !== null) observer.observe(place.current)
    return () => observer.disconnect()
  }, [])
  return (
    <div class="runs-more" ref={place} role="status">
      <Button isBusy={action.isBusy} onClick={() => void action.run()}>
        {action.isBusy && isSearching ? 'Searching older runs' : 'Older'}
      </Button>
    </div>
  )
}

/** Restores the scroll position when the user returns from a run. Scrolls to the top when the filters change. */
function useScrollPosition(filters: Filters, { list, isStale }: LiveRuns): void {
  const isReady = list !== undefined && !isStale
  const shown = useRef<Filters>(undefined)
  useLayoutEffect(() => {
    if (!isReady) return
    const isBack =
      shown.current === undefined && lastPosition !== undefined && isSameFilter(lastPosition.filters, filters)
    if (isBack) scrollTo({ top: lastPosition?.top ?? 0, behavior: 'instant' })
    else if (shown.current === undefined || !isSameFilter(shown.current, filters))
      scrollTo({ top: 0, behavior: 'instant' })
    shown.current = filters
  })
  useLayoutEffect(() => {
    if (!isReady) return
    const onScroll = () => {
      lastPosition = { filters, top: scrollY }
    }
    window.addEventListener('scroll', onScroll, { passive: true })
    return () => window.removeEventListener('scroll', onScroll)
  }, [isReady, filters.status, filters.kind, filters.model, filters.key, filters.search])
}

function NoRuns() {
  return (
    <div class="runs-empty">
      <EmptyState icon="runs" title="No runs yet.">
        Runs appear here when they are created: by the command line, by a program with an API key, or here
        with New run.
      </EmptyState>
      <CodeBlock code={'rushes run image "a fox"'} label="Command" />
    </div>
  )
}

function NoMatch() {
  return (
    <EmptyState icon="filter" title="No runs match these filters.">
      Choose other filters, or search for another part of the prompt.
    </EmptyState>
  )
}

const SKELETONS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const

function SkeletonRows() {
  return (
    <div class="runs-skeleton" role="status">
      <span class="visually-hidden">Loading</span>
      {SKELETONS.map((row, at) => (
        <div class="run-row" key={row}>
          <span class="thumb thumb-waiting" />
          <Skeleton width={`${[62, 48, 70, 40][at % 4]}%`} />
        </div>
      ))}
    </div>
  )
}
