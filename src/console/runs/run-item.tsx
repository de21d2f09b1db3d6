/** A run of the table or the grid: its link, and whether its video plays. */
import { Component, type ComponentChild, type FunctionComponent } from 'preact'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { linkTo } from '../routes.js'

export interface RunsProps {
  readonly runs: readonly RunSummary[]
  readonly isStale: boolean
}

export interface DrawnRun {
  readonly run: RunSummary
  /** Link with the prompt. */
  readonly link: ComponentChild
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
  readonly View: FunctionComponent<DrawnRun>
}

/** Skips drawing if nothing has changed: a list can have thousands of runs. */
export class RunItem extends Component<RunItemProps, { readonly isPlaying: boolean }> {
  override state = { isPlaying: false }

  override shouldComponentUpdate({ run, hasKeys }: RunItemProps, { isPlaying }: { isPlaying: boolean }) {
    return run !== this.props.run || hasKeys !== this.props.hasKeys || isPlaying !== this.state.isPlaying
  }

  override render({ run, View, hasKeys = false }: RunItemProps) {
    const play = () => this.setState({ isPlaying: true })
    const stop = () => this.setState({ isPlaying: false })
    const link = (
      <a href={linkTo('runs', { param: run.id })} onFocus={play} onBlur={stop}>
        <bdi>{printable(run.prompt).trim() || 'No prompt'}</bdi>
      </a>
    )
    const attributes = { 'data-run': run.id, onPointerEnter: play, onPointerLeave: stop }
    return <View {...{ run, hasKeys, link, attributes }} isPlaying={this.state.isPlaying} />
  }
}
