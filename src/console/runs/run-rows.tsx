/** Rows of the run list. Only rows near the viewport are in the document. All rows have the same height. */
import { type AnchorHTMLAttributes, Component, type ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { Time } from '../components/time.js'
import { formatNumber } from '../format.js'
import { linkTo } from '../routes.js'
import { isShortcut } from '../shortcuts.js'
import { RunStatus } from './run-details.js'
import { noteScroll, Thumbnail } from './run-outputs.js'

export interface RunRowsProps {
  readonly runs: readonly RunSummary[]
  /** True if there are older runs to load. */
  readonly hasMore: boolean
  readonly isStale: boolean
  readonly onRange: (range: RowRange, isAtTop: boolean) => void
  readonly onNearEnd: () => void
}

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
  // Focuses a row that was not in the document before.
  useLayoutEffect(focusLink)
  useRowKeys(current, focusRow)

  // Keep the focused row in the document, even outside the viewport.
  const indexes = Array.from({ length: Math.max(0, range.end - range.first) }, (_, at) => range.first + at)
  if (current < range.first && current < runs.length) indexes.unshift(current)
  if (current >= range.end && current < runs.length) indexes.push(current)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot omit rows outside the viewport
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
        {/* biome-ignore lint/a11y/useFocusableInteractive: a row of column titles takes no focus */}
        <div role="row" aria-rowindex={1} class="runs-heads">
          {COLUMNS.map(({ name }) => (
            // biome-ignore lint/a11y/useSemanticElements: see the table
            // biome-ignore lint/a11y/useFocusableInteractive: a column title takes no focus
            <div role="columnheader" key={name} class={`head-${name.toLowerCase()}`}>
              {name}
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

/** Keeps the scroll position relative to the first visible run when runs above it change. */
function useAnchor(body: Body, runs: readonly RunSummary[], rowHeight: number): void {
  const before = useRef(runs)
  useLayoutEffect(() => {
    const old = before.current
    before.current = runs
    const top = -(body.current?.getBoundingClientRect().top ?? 0)
    // At the top of the list, do not scroll: new runs should become visible.
    if (old === runs || top < rowHeight) return
    const at = Math.floor(top / rowHeight)
    const anchor = old[at]?.id
    const now = anchor === undefined ? -1 : runs.findIndex(({ id }) => id === anchor)
    if (now >= 0 && now !== at) window.scrollBy({ top: (now - at) * rowHeight, behavior: 'instant' })
  }, [runs])
}

const STEPS: Readonly<Record<string, number>> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }

/** `j` and `k` work on the whole page. Arrow keys work only if a row has the focus; otherwise they scroll the page. */
function useRowKeys(current: number, focusRow: (index: number) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return
      // Use the focused row instead of `current`, which is old if the next key arrives before the rows are drawn.
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

interface RunRowProps {
  readonly run: RunSummary
  readonly index: number
  readonly top: number
  /** True if the Tab key reaches this row. */
  readonly isCurrent: boolean
  readonly onFocus: (index: number) => void
}

/** Skips drawing if nothing has changed. Otherwise scrolling would draw every row again. */
class RunRow extends Component<RunRowProps> {
  override shouldComponentUpdate(next: RunRowProps): boolean {
    const { run, index, top, isCurrent } = this.props
    return run !== next.run || index !== next.index || top !== next.top || isCurrent !== next.isCurrent
  }

  override render(props: RunRowProps) {
    return <RunCells {...props} />
  }
}

function RunCells({ run, index, top, isCurrent, onFocus }: RunRowProps) {
  const [isPlaying, setPlaying] = useState(false)
  const link: RunLink = {
    href: linkTo('runs', { param: run.id }),
    tabIndex: isCurrent ? 0 : -1,
    onFocus() {
      onFocus(index)
      setPlaying(true)
    },
    onBlur: () => setPlaying(false),
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows of a table element cannot be positioned individually
    // biome-ignore lint/a11y/useFocusableInteractive: its link takes the focus
    <div
      role="row"
      class="run-row"
      aria-rowindex={index + 2}
      data-run={run.id}
      style={{ transform: `translateY(${top}px)` }}
      onPointerEnter={() => setPlaying(true)}
      onPointerLeave={() => setPlaying(false)}
    >
      {COLUMNS.map(({ name, class: cell, render }) => (
        // biome-ignore lint/a11y/useSemanticElements: see the row
        <div role="cell" key={name} class={cell}>
          {render(run, { isPlaying, link })}
        </div>
      ))}
    </div>
  )
}

type RunLink = Pick<AnchorHTMLAttributes, 'href' | 'tabIndex' | 'onFocus' | 'onBlur'>

interface RunColumn {
  readonly name: string
  readonly class: string
  render(run: RunSummary, row: { readonly isPlaying: boolean; readonly link: RunLink }): ComponentChildren
}

/** Columns of the list. The widths are in runs.css. */
const COLUMNS: readonly RunColumn[] = [
  {
    name: 'Output',
    class: 'run-thumb',
    render: (run, { isPlaying }) => (
      <Thumbnail key={`${run.id} ${run.status}`} run={run} isPlaying={isPlaying} />
    ),
  },
  {
    name: 'Prompt',
    class: 'run-prompt',
    render: (run, { link }) => (
      <>
        <a {...link}>
          <bdi>{printable(run.prompt).trim() || 'No prompt'}</bdi>
        </a>
        <span class="run-about">
          <span class="run-model">{printable(run.model)}</span>
          {run.aspect_ratio !== null && <span>{printable(run.aspect_ratio)}</span>}
          {run.error !== null && run.error !== undefined && (
            <bdi class="run-error">{printable(run.error.message)}</bdi>
          )}
        </span>
      </>
    ),
  },
  {
    name: 'Key',
    class: 'run-key',
    render: ({ key }) => (key ? <bdi>{printable(key.name)}</bdi> : <span class="muted">Console</span>),
  },
  { name: 'Status', class: 'run-state', render: (run) => <RunStatus run={run} /> },
  {
    name: 'Credits',
    class: 'run-price',
    render: ({ price }) => (
      <>
        <span class="number">{formatNumber(price)}</span>
        <span class="run-unit">{price === 1 ? ' credit' : ' credits'}</span>
      </>
    ),
  },
  { name: 'Created', class: 'run-time', render: (run) => <Time at={run.created_at} /> },
]

interface RowView {
  readonly count: number
  readonly rowHeight: number
  /** Top of the viewport, in pixels below the top of the first row. Negative if the first row starts further down. */
  readonly top: number
  readonly height: number
}

export interface RowRange {
  readonly first: number
  /** Index after the last row. */
  readonly end: number
}

/** Number of extra rows drawn above and below the viewport, so that fast scrolling shows no gaps. */
const OVERSCAN = 8

export function visibleRows({ count, rowHeight, top, height }: RowView, overscan = OVERSCAN): RowRange {
  const first = clamp(Math.floor(top / rowHeight) - overscan, 0, count)
  const end = clamp(Math.ceil((top + height) / rowHeight) + overscan, first, count)
  return { first, end }
}

/** Pixels to scroll so that a row and the next one beyond it are visible; 0 if they are already visible. */
export function scrollToShow(index: number, { rowHeight, top, height }: RowView): number {
  const start = index * rowHeight
  if (start < top + rowHeight) return Math.min(0, start - rowHeight - top)
  return Math.max(0, start + 2 * rowHeight - (top + height))
}

/** Returns true if the end of the list is less than three screens away, so that the next page should be loaded. */
export const isNearEnd = ({ count, rowHeight, top, height }: RowView): boolean =>
  count * rowHeight - (top + height) < 3 * height

const NARROW_WIDTH = 720

/** Row height in pixels. Must match runs.css. */
export const rowHeightOf = (width: number): number => (width < NARROW_WIDTH ? 92 : 68)

const clamp = (value: number, min: number, max: number): number => Math.max(min, Math.min(max, value))
