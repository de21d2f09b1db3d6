/** A run of the table or the grid: its link, and whether its video plays. */
import { Component, type ComponentChild, type FunctionComponent } from 'preact'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { linkTo } from '../routes.js'
import { isFinished } from './run-list.js'

export interface RunsProps {
  readonly runs: readonly RunSummary[]
  readonly isStale: boolean
  /** Ids of the selected runs. */
  readonly chosen: ReadonlySet<string>
  /** Must stay the same function, so that no run is drawn again for it. */
  readonly onChoose: (id: string, isChosen: boolean) => void
}

export interface DrawnRun {
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

interface RunItemProps {
  readonly run: RunSummary
  readonly hasKeys?: boolean
  readonly isChosen: boolean
  readonly onChoose: RunsProps['onChoose']
  readonly View: FunctionComponent<DrawnRun>
}

/** Skips drawing if nothing has changed: a list can have thousands of runs. */
export class RunItem extends Component<RunItemProps, { readonly isPlaying: boolean }> {
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
