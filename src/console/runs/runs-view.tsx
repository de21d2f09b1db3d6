/** The runs as a table or a grid, the switch between them, and their keys. */
import { Component, type ComponentChild, type ComponentChildren, type FunctionComponent } from 'preact'
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { Button } from '../components/button.js'
import { Time } from '../components/time.js'
import { capitalized, formatNumber } from '../format.js'
import { linkTo } from '../routes.js'
import { isShortcut } from '../shortcuts.js'
import { savedStore, useStore } from '../store.js'
import { RunStatus } from './run-details.js'
import { isFinished } from './run-list.js'
import { Thumbnail } from './thumbnail.js'

interface RunsProps {
  readonly runs: readonly RunSummary[]
  readonly isStale: boolean
  /** Ids of the selected runs. */
  readonly chosen: ReadonlySet<string>
  /** Must stay the same function, so that no run is drawn again for it. */
  readonly onChoose: (id: string, isChosen: boolean) => void
}

interface DrawnRun {
  readonly run: RunSummary
  /** Link with the prompt. */
  readonly link: ComponentChild
  /** Checkbox that selects the run. Only an unfinished run has one. */
  readonly choice: ComponentChild
  /** True if the table has a column with the key. */
  readonly hasKeys: boolean
  /** True if the pointer or the focus is on the run. */
  readonly isPlaying: boolean
  /** Attributes of the run's element. */
  readonly attributes: object
}

const VIEWS = ['list', 'grid'] as const
type View = (typeof VIEWS)[number]

/** The choice is stored in this browser. */
const viewStore = savedStore<View>('rushes.runs', VIEWS)

export function ViewSwitch() {
  const view = useStore(viewStore)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be a flex container in all browsers
    <div role="group" class="view-switch" aria-label="View">
      {VIEWS.map((each) => (
        <Button
          key={each}
          kind="ghost"
          size="small"
          icon={each}
          label={capitalized(each)}
          isPressed={each === view}
          onClick={() => viewStore.set(() => each)}
        />
      ))}
    </div>
  )
}

export function RunsView(props: RunsProps) {
  const view = useStore(viewStore)
  // Keeps the first run in view in its place when runs arrive above it: WebKit does not, and Chromium not after a jump.
  // At the top of the page, new runs should become visible.
  const [anchor] = scrollY > 0 ? runsInView() : []
  const before = anchor?.getBoundingClientRect().top ?? 0
  useLayoutEffect(() => {
    if (!anchor?.isConnected) return
    scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: 'instant' })
  }, [props.runs])
  useEffect(() => {
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  if (view === 'list') return <RunRows {...props} />
  return (
    <ul class="run-tiles" aria-label="Runs" aria-busy={props.isStale || undefined}>
      {props.runs.map((run) => (
        <RunItem
          key={run.id}
          run={run}
          View={Tile}
          isChosen={props.chosen.has(run.id)}
          onChoose={props.onChoose}
        />
      ))}
    </ul>
  )
}

const Tile = ({ run, link, choice, isPlaying, attributes }: DrawnRun) => (
  <li class="run-tile" {...attributes}>
    <Thumbnail key={`${run.id} ${run.status}`} run={run} isPlaying={isPlaying} />
    {choice}
    <span class="run-prompt">{link}</span>
    <span class="tile-about">
      <RunStatus run={run} />
      <span class="run-time">
        <Time at={run.created_at} />
      </span>
    </span>
  </li>
)

const itemsOf = (): readonly HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[data-run]')]

function runsInView(): readonly HTMLElement[] {
  const items = itemsOf()
  // Runs are in the order of their position. To measure each of thousands would take too long.
  let [from, end] = [0, items.length]
  while (from < end) {
    const middle = Math.floor((from + end) / 2)
    if ((items[middle]?.getBoundingClientRect().bottom ?? 0) > 0) end = middle
    else from = middle + 1
  }
  const below = items.findIndex((item, at) => at >= from && item.getBoundingClientRect().top >= innerHeight)
  return items.slice(from, below === -1 ? items.length : below)
}

export const idsInView = (): ReadonlySet<string | undefined> =>
  new Set(runsInView().map(({ dataset }) => dataset.run))

/** `j` and `k` move the focus to the next and the previous run, and from elsewhere to the first run in view. */
function onKey(event: KeyboardEvent): void {
  if (!isShortcut(event) || (event.key !== 'j' && event.key !== 'k')) return
  const items = itemsOf()
  const focused = document.activeElement?.closest<HTMLElement>('[data-run]')
  const next = focused ? items[items.indexOf(focused) + (event.key === 'j' ? 1 : -1)] : runsInView()[0]
  if (next === undefined) return
  event.preventDefault()
  next.querySelector('a')?.focus({ preventScroll: true })
  next.scrollIntoView({ block: 'nearest' })
}

/** The runs as a table. */
function RunRows({ runs, isStale, chosen, onChoose }: RunsProps) {
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

interface RunItemProps {
  readonly run: RunSummary
  readonly hasKeys?: boolean
  readonly isChosen: boolean
  readonly onChoose: RunsProps['onChoose']
  readonly View: FunctionComponent<DrawnRun>
}

/**
 * A run of the table or the grid: its link, and whether its video plays. Skips drawing if nothing has changed: a list
 * can have thousands of runs.
 */
class RunItem extends Component<RunItemProps, { readonly isPlaying: boolean }> {
  override state = { isPlaying: false }

  override shouldComponentUpdate(next: RunItemProps, { isPlaying }: { isPlaying: boolean }) {
    const { run, hasKeys, isChosen } = this.props
    const isSame = next.run === run && next.hasKeys === hasKeys && next.isChosen === isChosen
    return !isSame || isPlaying !== this.state.isPlaying
  }

  override render({ run, View, hasKeys = false, isChosen, onChoose }: RunItemProps) {
    const prompt = printable(run.prompt).trim() || 'No prompt'
    const play = () => this.setState({ isPlaying: true })
    const stop = () => this.setState({ isPlaying: false })
    const link = (
      <a href={linkTo('runs', { param: run.id })} onFocus={play} onBlur={stop}>
        <bdi>{prompt}</bdi>
      </a>
    )
    const choice = !isFinished(run) && (
      <input
        type="checkbox"
        class="run-choice"
        aria-label={`Select ${prompt}`}
        checked={isChosen}
        onChange={({ currentTarget }) => onChoose(run.id, currentTarget.checked)}
      />
    )
    const attributes = { 'data-run': run.id, onPointerEnter: play, onPointerLeave: stop }
    return <View {...{ run, hasKeys, link, choice, attributes }} isPlaying={this.state.isPlaying} />
  }
}
