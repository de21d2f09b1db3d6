import { Component, type ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { Time } from '../components/time.js'
import { formatNumber } from '../format.js'
import { linkTo } from '../routes.js'
import { RunStatus } from './run-status.js'
import { Thumbnail } from './thumbnail.js'

export interface RunRowProps {
  readonly run: RunSummary
  readonly index: number
  readonly top: number
  /** Whether the tab key leads to this row. */
  readonly isCurrent: boolean
  readonly onFocus: (index: number) => void
}

/** Drawn anew only when it changes: the list draws all of its rows while one scrolls. */
export class RunRow extends Component<RunRowProps> {
  override shouldComponentUpdate(next: RunRowProps): boolean {
    const { run, index, top, isCurrent } = this.props
    return run !== next.run || index !== next.index || top !== next.top || isCurrent !== next.isCurrent
  }

  override render(props: RunRowProps) {
    return <Row {...props} />
  }
}

function Row({ run, index, top, isCurrent, onFocus }: RunRowProps) {
  const [isPlaying, setPlaying] = useState(false)
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows of a table element cannot be placed by themselves
    // biome-ignore lint/a11y/useFocusableInteractive: its link has the focus
    <div
      role="row"
      class="run-row"
      aria-rowindex={index + 2}
      data-run={run.id}
      style={{ transform: `translateY(${top}px)` }}
      onPointerEnter={() => setPlaying(true)}
      onPointerLeave={() => setPlaying(false)}
    >
      <Cell class="run-thumb">
        <Thumbnail key={`${run.id} ${run.status}`} run={run} isPlaying={isPlaying} />
      </Cell>
      <Cell class="run-prompt">
        <a
          href={linkTo('runs', { param: run.id })}
          tabIndex={isCurrent ? 0 : -1}
          onFocus={() => {
            onFocus(index)
            setPlaying(true)
          }}
          onBlur={() => setPlaying(false)}
        >
          <bdi>{printable(run.prompt).trim() || 'No prompt'}</bdi>
        </a>
        <span class="run-about">
          <span class="run-model">{printable(run.model)}</span>
          {run.aspect_ratio !== null && <span>{printable(run.aspect_ratio)}</span>}
          {run.error !== null && run.error !== undefined && (
            <bdi class="run-error">{printable(run.error.message)}</bdi>
          )}
        </span>
      </Cell>
      <Cell class="run-key">
        {run.key ? <bdi>{printable(run.key.name)}</bdi> : <span class="muted">Console</span>}
      </Cell>
      <Cell class="run-state">
        <RunStatus status={run.status} />
      </Cell>
      <Cell class="run-price">
        <span class="number">{formatNumber(run.price)}</span>
        <span class="run-unit">{run.price === 1 ? ' credit' : ' credits'}</span>
      </Cell>
      <Cell class="run-time">
        <Time at={run.created_at} />
      </Cell>
    </div>
  )
}

interface CellProps {
  readonly class: string
  readonly children?: ComponentChildren
}

function Cell({ class: name, children }: CellProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the row
    <div role="cell" class={name}>
      {children}
    </div>
  )
}
