/** The runs as rows. */
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { Time } from '../components/time.js'
import { formatNumber } from '../format.js'
import { isRefunded, RunStatus } from './run-details.js'
import { type DrawnRun, RunItem, type RunItemProps } from './run-item.js'
import type { DrawnRunsProps, Layout } from './runs-window.js'
import { Thumbnail } from './thumbnail.js'

export function RunRows({ runs, hasMore, isStale, window }: DrawnRunsProps) {
  const { body, height, indexes, current, setCurrent } = window
  const hasKeys = useMemo(() => runs.some(({ key }) => key?.id !== runs[0]?.key?.id), [runs])
  const View = hasKeys ? RowWithKey : Row
  const columns = hasKeys ? COLUMNS : WITHOUT_KEY
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot omit rows outside the viewport
    <div
      role="table"
      class={hasKeys ? 'runs-table has-keys' : 'runs-table'}
      aria-label="Runs"
      aria-rowcount={hasMore ? -1 : runs.length + 1}
      aria-busy={isStale || undefined}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: see the table */}
      <div role="rowgroup">
        {/* biome-ignore lint/a11y/useSemanticElements: see the table */}
        {/* biome-ignore lint/a11y/useFocusableInteractive: a row of column titles takes no focus */}
        <div role="row" aria-rowindex={1} class="runs-heads">
          {columns.map(({ name }) => (
            // biome-ignore lint/a11y/useSemanticElements: see the table
            // biome-ignore lint/a11y/useFocusableInteractive: a column title takes no focus
            <div role="columnheader" key={name} class={`head-${name.toLowerCase()}`}>
              {name}
            </div>
          ))}
        </div>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: see the table */}
      <div role="rowgroup" class="runs-body" ref={body} style={{ height: `${height}px` }}>
        {indexes.map((index) => {
          const run = runs[index]
          if (run === undefined) return null
          return (
            <RunItem
              key={run.id}
              View={View}
              run={run}
              index={index}
              top={index * rowsLayout().rowHeight}
              isCurrent={index === current}
              onFocus={setCurrent}
            />
          )
        })}
      </div>
    </div>
  )
}

const Row = (props: RunItemProps & DrawnRun) => <Cells {...props} columns={WITHOUT_KEY} />
const RowWithKey = (props: RunItemProps & DrawnRun) => <Cells {...props} columns={COLUMNS} />

function Cells(props: RunItemProps & DrawnRun & { readonly columns: readonly RunColumn[] }) {
  const { run, index, top, hover, columns } = props
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows of a table element cannot be positioned individually
    // biome-ignore lint/a11y/useFocusableInteractive: its link takes the focus
    <div
      role="row"
      class="run-row"
      aria-rowindex={index + 2}
      data-index={index}
      data-run={run.id}
      style={{ transform: `translateY(${top}px)` }}
      {...hover}
    >
      {columns.map(({ name, class: cell, render }) => (
        // biome-ignore lint/a11y/useSemanticElements: see the row
        <div role="cell" key={name} class={cell}>
          {render(run, props)}
        </div>
      ))}
    </div>
  )
}

interface RunColumn {
  readonly name: string
  readonly class: string
  render(run: RunSummary, drawn: DrawnRun): ComponentChildren
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
        {link}
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
    render: (run) =>
      isRefunded(run) ? (
        <span class="muted">Refunded</span>
      ) : (
        <>
          <span class="number">{formatNumber(run.price)}</span>
          <span class="run-unit">{run.price === 1 ? ' credit' : ' credits'}</span>
        </>
      ),
  },
  { name: 'Created', class: 'run-time', render: (run) => <Time at={run.created_at} /> },
]

/** Used if all runs have the same key. */
const WITHOUT_KEY = COLUMNS.filter(({ name }) => name !== 'Key')

const NARROW_WIDTH = 720

/** Row height in pixels. Must match runs.css. */
export const rowHeightOf = (windowWidth: number): number => (windowWidth < NARROW_WIDTH ? 92 : 68)

export const rowsLayout = (): Layout => ({ columns: 1, rowHeight: rowHeightOf(innerWidth) })
