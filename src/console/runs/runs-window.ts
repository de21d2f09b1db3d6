/** Virtual scrolling of the runs, as rows or as a grid of tiles: only runs near the viewport are in the document. */
import type { Ref } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { isShortcut } from '../shortcuts.js'
import { noteScroll } from './thumbnail.js'

/** All rows have the same height. */
export interface Layout {
  readonly columns: number
  readonly rowHeight: number
}

export interface RunsProps {
  readonly runs: readonly RunSummary[]
  /** True if there are older runs to load. */
  readonly hasMore: boolean
  readonly isStale: boolean
  readonly onRange: (range: RunRange, isAtTop: boolean) => void
  readonly onNearEnd: () => void
}

export interface RunsWindow {
  /** For the element that contains the runs. */
  readonly body: Ref<HTMLDivElement>
  /** Width of that element. */
  readonly width: number
  readonly height: number
  /** Indexes of the runs to draw, each in an element with `data-index`. */
  readonly indexes: readonly number[]
  /** Index of the run that the Tab key reaches. */
  readonly current: number
  readonly setCurrent: (index: number) => void
}

export interface DrawnRunsProps extends Pick<RunsProps, 'runs' | 'hasMore' | 'isStale'> {
  readonly window: RunsWindow
}

/** Kept for the return from a run's page: with another width, the restored scroll position would be wrong. */
let lastWidth = 0

/** `layoutOf` gets the width of the body. */
export function useRunsWindow(
  { runs, hasMore, onRange, onNearEnd }: RunsProps,
  layoutOf: (width: number) => Layout,
): RunsWindow {
  const body = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(() => lastWidth || innerWidth)
  const [range, setRange] = useState<RunRange>({ first: 0, end: 0 })
  const [current, setCurrent] = useState(0)
  const focusNext = useRef<number | undefined>(undefined)
  const { columns, rowHeight } = layoutOf(width)

  const view = useCallback((): RunsView => {
    const top = body.current?.getBoundingClientRect().top ?? 0
    return { count: runs.length, columns, rowHeight, top: -top, height: innerHeight }
  }, [runs, columns, rowHeight])

  const measure = useCallback(() => {
    if (body.current !== null) lastWidth = Math.floor(body.current.getBoundingClientRect().width)
    setWidth(lastWidth)
    const now = view()
    const next = visibleRuns(now)
    setRange((before) => (before.first === next.first && before.end === next.end ? before : next))
    onRange(next, now.top < rowHeight)
    if (hasMore && isNearEnd(now)) onNearEnd()
  }, [view, hasMore, onRange, onNearEnd])

  useAnchor(body, runs, columns, rowHeight)
  useLayoutEffect(measure, [measure])
  useEffect(() => {
    const onScroll = () => {
      noteScroll()
      measure()
    }
    window.addEventListener('scroll', onScroll, { passive: true })
    window.addEventListener('resize', measure)
    // A scrollbar changes the width without an event of the window.
    const observer = new ResizeObserver(measure)
    if (body.current !== null) observer.observe(body.current)
    return () => {
      window.removeEventListener('scroll', onScroll)
      window.removeEventListener('resize', measure)
      observer.disconnect()
    }
  }, [measure])

  const focusLink = () => {
    const item = body.current?.querySelector(`[data-index="${focusNext.current}"]`)
    const link = item?.querySelector('a')
    if (!link) return
    focusNext.current = undefined
    link.focus({ preventScroll: true })
  }
  const focusRun = (index: number) => {
    if (index < 0 || index >= runs.length) return
    focusNext.current = index
    setCurrent(index)
    window.scrollBy({ top: scrollToShow(index, view()), behavior: 'instant' })
    measure()
    focusLink()
  }
  // Focuses a run that was not in the document before.
  useLayoutEffect(focusLink)
  useRunKeys(current, { columns, count: runs.length }, focusRun)

  // Keep the focused run in the document, even outside the viewport.
  const indexes = Array.from({ length: Math.max(0, range.end - range.first) }, (_, at) => range.first + at)
  if (current < range.first && current < runs.length) indexes.unshift(current)
  if (current >= range.end && current < runs.length) indexes.push(current)
  const height = Math.ceil(runs.length / columns) * rowHeight
  return { body, width, height, indexes, current: Math.min(current, runs.length - 1), setCurrent }
}

/** Keeps the first visible run in its place when runs above it change, and in view when the layout changes. */
function useAnchor(
  body: { readonly current: HTMLDivElement | null },
  runs: readonly RunSummary[],
  columns: number,
  rowHeight: number,
): void {
  const topOf = () => -(body.current?.getBoundingClientRect().top ?? 0)
  const before = useRef({ runs, columns, rowHeight, top: 0 })
  useEffect(() => {
    // A shorter page changes the scroll position, so keep the position from before the change.
    const onScroll = () => {
      before.current.top = topOf()
    }
    window.addEventListener('scroll', onScroll, { passive: true })
    return () => window.removeEventListener('scroll', onScroll)
  }, [])
  useLayoutEffect(() => {
    const old = before.current
    const top = topOf()
    before.current = { runs, columns, rowHeight, top }
    const isOtherLayout = old.columns !== columns || old.rowHeight !== rowHeight
    const oldTop = isOtherLayout ? old.top : top
    // At the top of the list, do not scroll: new runs should become visible.
    if (oldTop < old.rowHeight) return
    const oldRow = Math.floor(oldTop / old.rowHeight)
    const anchor = old.runs[oldRow * old.columns]?.id
    const now = anchor === undefined ? -1 : runs.findIndex(({ id }) => id === anchor)
    if (now < 0) return
    const offset = isOtherLayout ? 0 : oldTop - oldRow * rowHeight
    const by = Math.floor(now / columns) * rowHeight + offset - top
    if (by !== 0) window.scrollBy({ top: by, behavior: 'instant' })
  }, [runs, columns, rowHeight])
}

type Grid = Pick<RunsView, 'columns' | 'count'>

/** Index of the run that a key moves to. Undefined for other keys, and at the ends. */
export function runAfterKey(key: string, from: number, { columns, count }: Grid): number | undefined {
  const last = count - 1
  if (key === 'j' || (columns > 1 && key === 'ArrowRight')) return from < last ? from + 1 : undefined
  if (key === 'k' || (columns > 1 && key === 'ArrowLeft')) return from > 0 ? from - 1 : undefined
  if (key === 'ArrowUp') return from >= columns ? from - columns : undefined
  // The last row may have no tile below this one.
  const isLastRow = Math.floor(from / columns) === Math.floor(last / columns)
  return key === 'ArrowDown' && !isLastRow ? Math.min(last, from + columns) : undefined
}

/** `j` and `k` work on the whole page. Arrow keys work only if a run has the focus; otherwise they scroll the page. */
function useRunKeys(current: number, grid: Grid, focusRun: (index: number) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return
      // Use the focused run instead of `current`, which is old if the next key arrives before the runs are drawn.
      const focused = document.activeElement?.closest<HTMLElement>('[data-index]') ?? null
      const isLetter = event.key === 'j' || event.key === 'k'
      if (!isLetter && focused === null) return
      const next = focused === null ? current : runAfterKey(event.key, Number(focused.dataset.index), grid)
      if (next === undefined) return
      event.preventDefault()
      focusRun(next)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  })
}

interface RunsView extends Layout {
  /** Number of runs. */
  readonly count: number
  /** Top of the viewport, in pixels below the top of the first row. Negative if the first row starts further down. */
  readonly top: number
  readonly height: number
}

export interface RunRange {
  readonly first: number
  /** Index after the last run. */
  readonly end: number
}

/** Pixels drawn above and below the viewport, so that fast scrolling shows no gaps. */
const OVERSCAN = 544

export function visibleRuns(
  { count, columns, rowHeight, top, height }: RunsView,
  overscan = OVERSCAN,
): RunRange {
  const rows = Math.ceil(count / columns)
  const extra = Math.ceil(overscan / rowHeight)
  const first = clamp(Math.floor(top / rowHeight) - extra, 0, rows) * columns
  const end = clamp(Math.ceil((top + height) / rowHeight) + extra, 0, rows) * columns
  return { first: Math.min(count, first), end: clamp(end, Math.min(count, first), count) }
}

/** Pixels to scroll so that a run and the next row beyond it are visible; 0 if they are already visible. */
export function scrollToShow(index: number, { columns, rowHeight, top, height }: RunsView): number {
  const start = Math.floor(index / columns) * rowHeight
  // On a small screen, two rows of tiles may not fit.
  const beyond = Math.min(rowHeight, Math.max(0, height - rowHeight) / 2)
  if (start < top + beyond) return Math.min(0, start - beyond - top)
  return Math.max(0, start + rowHeight + beyond - (top + height))
}

/** Returns true if the end of the list is less than three screens away, so that the next page should be loaded. */
export const isNearEnd = ({ count, columns, rowHeight, top, height }: RunsView): boolean =>
  Math.ceil(count / columns) * rowHeight - (top + height) < 3 * height

const clamp = (value: number, min: number, max: number): number => Math.max(min, Math.min(max, value))
