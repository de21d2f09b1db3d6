/** The runs as a table. */
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { Time } from '../components/time.js'
import { formatNumber } from '../format.js'
import { RunStatus } from './run-details.js'
import { type DrawnRun, RunItem, type RunsProps } from './run-item.js'
import { Thumbnail } from './thumbnail.js'

export function RunRows({ runs, isStale, chosen, onChoose }: RunsProps) {
  const hasKeys = useMemo(() => runs.some(({ key }) => key?.id !== runs[0]?.key?.id), [runs])
  return (
    <table
      class={hasKeys ? 'runs-table has-keys' : 'runs-table'}
      aria-label="Runs"
      aria-busy={isStale || undefined}
    >
      <thead>
        <tr class="runs-heads">
          {columnsOf(hasKeys).map(({ name }) => (
            <th key={name} scope="col" class={`head-${name.toLowerCase()}`}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunItem
            key={run.id}
            run={run}
            View={Row}
            hasKeys={hasKeys}
            isChosen={chosen.has(run.id)}
            onChoose={onChoose}
          />
        ))}
      </tbody>
    </table>
  )
}

const columnsOf = (hasKeys: boolean): readonly RunColumn[] => (hasKeys ? COLUMNS : WITHOUT_KEY)

const Row = (drawn: DrawnRun) => (
  <tr class="run-row" {...drawn.attributes}>
    {columnsOf(drawn.hasKeys).map(({ name, class: cell, render }) => (
      <td key={name} class={cell}>
        {render(drawn.run, drawn)}
      </td>
    ))}
  </tr>
)

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
    render: (run, { isPlaying, choice }) => (
      <>
        <Thumbnail key={`${run.id} ${run.status}`} run={run} isPlaying={isPlaying} />
        {choice}
      </>
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
      run.is_refunded ? (
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
