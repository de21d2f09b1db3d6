/** The runs as a list or a grid of two sizes, and the switch between them. The choice is stored in this browser. */
import { Button } from '../components/button.js'
import type { IconName } from '../components/icon.js'
import { savedStore, useStore } from '../store.js'
import { RunRows, rowsLayout } from './run-rows.js'
import { RunTiles, tileLayout } from './run-tiles.js'
import { type Layout, type RunsProps, useRunsWindow } from './runs-window.js'

const VIEWS = ['list', 'small', 'large'] as const
type View = (typeof VIEWS)[number]

const viewStore = savedStore<View>('rushes.runs', VIEWS)

const LABELS: Readonly<Record<View, readonly [label: string, icon: IconName]>> = {
  list: ['List', 'list'],
  small: ['Small grid', 'small-grid'],
  large: ['Large grid', 'large-grid'],
}

const LAYOUTS: Readonly<Record<View, (width: number) => Layout>> = {
  list: rowsLayout,
  small: (width) => tileLayout('small', width),
  large: (width) => tileLayout('large', width),
}

export function ViewSwitch() {
  const view = useStore(viewStore)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be a flex container in all browsers
    <div role="group" class="view-switch" aria-label="View">
      {VIEWS.map((each) => {
        const [label, icon] = LABELS[each]
        return (
          <Button
            key={each}
            kind="ghost"
            size="small"
            icon={icon}
            label={label}
            isPressed={each === view}
            onClick={() => viewStore.set(() => each)}
          />
        )
      })}
    </div>
  )
}

/** Both views use the same window, so that a switch keeps the position and the focus. */
export function RunsView(props: RunsProps) {
  const view = useStore(viewStore)
  const window = useRunsWindow(props, LAYOUTS[view])
  return view === 'list' ? (
    <RunRows {...props} window={window} />
  ) : (
    <RunTiles {...props} window={window} size={view} />
  )
}
