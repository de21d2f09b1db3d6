/** A run of the list or the grid: its link, and whether its video plays. */
import { Component, type ComponentChild, type FunctionComponent } from 'preact'
import { useState } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { linkTo } from '../routes.js'

export interface RunItemProps {
  readonly run: RunSummary
  readonly index: number
  /** Number of runs of a grid; -1 if there are older runs to load. */
  readonly count?: number
  /** In pixels. Only tiles have `left` and `width`. */
  readonly top: number
  readonly left?: number
  readonly width?: number
  /** True if the Tab key reaches this run. */
  readonly isCurrent: boolean
  readonly onFocus: (index: number) => void
}

export interface DrawnRun {
  /** Link with the prompt. */
  readonly link: ComponentChild
  /** True if the pointer or the focus is on the run. */
  readonly isPlaying: boolean
  /** Attributes of the run's element. */
  readonly hover: { readonly onPointerEnter: () => void; readonly onPointerLeave: () => void }
}

interface ViewedItemProps extends RunItemProps {
  readonly View: FunctionComponent<RunItemProps & DrawnRun>
}

/** Skips drawing if nothing has changed. Otherwise scrolling would draw every run again. */
export class RunItem extends Component<ViewedItemProps> {
  override shouldComponentUpdate(next: ViewedItemProps): boolean {
    return Object.entries(next).some(([name, value]) => value !== this.props[name as keyof ViewedItemProps])
  }

  override render(props: ViewedItemProps) {
    return <DrawnItem {...props} />
  }
}

function DrawnItem({ View, ...props }: ViewedItemProps) {
  const { run, index, isCurrent, onFocus } = props
  const [isPlaying, setPlaying] = useState(false)
  const link = (
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
  )
  const hover = { onPointerEnter: () => setPlaying(true), onPointerLeave: () => setPlaying(false) }
  return <View {...props} link={link} isPlaying={isPlaying} hover={hover} />
}
