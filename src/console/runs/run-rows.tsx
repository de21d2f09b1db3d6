/** The rows of the list, of which only those near the view are in the document. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { isTyping } from '../shortcuts.js'
import {
  isNearEnd,
  type RowRange,
  type RowView,
  rowHeightOf,
  scrollToShow,
  visibleRows,
} from './row-window.js'
import { RunRow } from './run-row.js'
import { noteScroll } from './scrolling.js'

export interface RunRowsProps {
  readonly runs: readonly RunSummary[]
  /** Whether there are more than these. */
  readonly hasMore: boolean
  readonly isStale: boolean
  readonly onRange: (range: RowRange, isAtTop: boolean) => void
  readonly onNearEnd: () => void
}

const HEADS = ['Output', 'Prompt', 'Key', 'Status', 'Credits', 'Created'] as const

export function RunRows({ runs, hasMore, isStale, onRange, onNearEnd }: RunRowsProps) {
  const body = useRef<HTMLDivElement>(null)
  const [rowHeight, setRowHeight] = useState(() => rowHeightOf(innerWidth))
  const [range, setRange] = useState<RowRange>({ first: 0, end: 0 })
  const [current, setCurrent] = useState(0)
  const focusNext = useRef<number | undefined>(undefined)

  const view = useCallback((): RowView => {
    const top = body.current?.getBoundingClientRect().top ?? 0
    return { count: runs.length, rowHeight, top: -top, height: innerHeight }
  }, [runs, rowHeight])

  const measure = useCallback(() => {
    const now = view()
    const next = visibleRows(now)
    setRange((before) => (before.first === next.first && before.end === next.end ? before : next))
    onRange(next, now.top < rowHeight)
    if (hasMore && isNearEnd(now)) onNearEnd()
  }, [view, hasMore, onRange, onNearEnd])

  useAnchor(body, runs, rowHeight)
  useLayoutEffect(measure, [measure])
  useEffect(() => {
    const onResize = () => {
      setRowHeight(rowHeightOf(innerWidth))
      measure()
    }
    const onScroll = () => {
      noteScroll()
      measure()
    }
    window.addEventListener('scroll', onScroll, { passive: true })
    window.addEventListener('resize', onResize)
    return () => {
      window.removeEventListener('scroll', onScroll)
      window.removeEventListener('resize', onResize)
    }
  }, [measure])

  const focusLink = () => {
    const index = focusNext.current
    const row = index === undefined ? null : body.current?.querySelector(`[aria-rowindex="${index + 2}"]`)
    const link = row?.querySelector('a')
    if (!link) return
    focusNext.current = undefined
    link.focus({ preventScroll: true })
  }
  const focusRow = (index: number) => {
    if (index < 0 || index >= runs.length) return
    focusNext.current = index
    setCurrent(index)
    window.scrollBy({ top: scrollToShow(index, view()), behavior: 'instant' })
    measure()
    focusLink()
  }
  // For a row that was not in the document yet.
  useLayoutEffect(focusLink)
  useRowKeys(current, focusRow)

  // A row with the focus stays in the document wherever it is.
  const indexes = Array.from({ length: Math.max(0, range.end - range.first) }, (_, at) => range.first + at)
  if (current < range.first && current < runs.length) indexes.unshift(current)
  if (current >= range.end && current < runs.length) indexes.push(current)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot leave out rows that are not in view
    <div
      role="table"
      class="runs-table"
      aria-label="Runs"
      aria-rowcount={hasMore ? -1 : runs.length + 1}
      aria-busy={isStale || undefined}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: see the table */}
      <div role="rowgroup">
        {/* biome-ignore lint/a11y/useSemanticElements: see the table */}
        {/* biome-ignore lint/a11y/useFocusableInteractive: a row of titles */}
        <div role="row" aria-rowindex={1} class="runs-heads">
          {HEADS.map((head) => (
            // biome-ignore lint/a11y/useSemanticElements: see the table
            // biome-ignore lint/a11y/useFocusableInteractive: a title
            <div role="columnheader" key={head} class={`head-${head.toLowerCase()}`}>
              {head}
            </div>
          ))}
        </div>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: see the table */}
      <div role="rowgroup" class="runs-body" ref={body} style={{ height: `${runs.length * rowHeight}px` }}>
        {indexes.map((index) => {
          const run = runs[index]
          if (run === undefined) return null
          return (
            <RunRow
              key={run.id}
              run={run}
              index={index}
              top={index * rowHeight}
              isCurrent={index === Math.min(current, runs.length - 1)}
              onFocus={setCurrent}
            />
          )
        })}
      </div>
    </div>
  )
}

type Body = { readonly current: HTMLDivElement | null }

/** Keeps what one looks at in its place when runs come or go above it. */
function useAnchor(body: Body, runs: readonly RunSummary[], rowHeight: number): void {
  const before = useRef(runs)
  useLayoutEffect(() => {
    const old = before.current
    before.current = runs
    const top = -(body.current?.getBoundingClientRect().top ?? 0)
    // At the top one wants to see what is new.
    if (old === runs || top < rowHeight) return
    const at = Math.floor(top / rowHeight)
    const anchor = old[at]?.id
    const now = anchor === undefined ? -1 : runs.findIndex(({ id }) => id === anchor)
    if (now >= 0 && now !== at) window.scrollBy({ top: (now - at) * rowHeight, behavior: 'instant' })
  }, [runs])
}

const STEPS: Readonly<Record<string, number>> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }

/** `j` and `k` work everywhere on the page; the arrows on a row, since they scroll otherwise. */
function useRowKeys(current: number, focusRow: (index: number) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event)) return
      // Not `current`: the next key can come before the rows are drawn.
      const row = document.activeElement?.closest('.run-row') ?? null
      const step = STEPS[event.key]
      if (step === undefined || (event.key.startsWith('Arrow') && row === null)) return
      event.preventDefault()
      focusRow(row === null ? current : Number(row.getAttribute('aria-rowindex')) - 2 + step)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  })
}
