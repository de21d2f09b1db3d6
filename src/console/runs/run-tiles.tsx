/** The runs as a grid of tiles. */
import { Time } from '../components/time.js'
import { RunStatus } from './run-details.js'
import { type DrawnRun, RunItem, type RunItemProps } from './run-item.js'
import type { DrawnRunsProps, Layout } from './runs-window.js'
import { Thumbnail } from './thumbnail.js'

/** Minimum widths of a tile. */
const MIN_WIDTH = { small: 148, large: 260 } as const
const GAP = 16
/** Height of the text of a tile. Must match runs.css. */
const TEXT_HEIGHT = 56

export type TileSize = keyof typeof MIN_WIDTH

/** As many columns as fit. The picture of a tile is a square. */
export function tileLayout(size: TileSize, width: number): Layout & { readonly tileWidth: number } {
  const columns = Math.max(1, Math.floor((width + GAP) / (MIN_WIDTH[size] + GAP)))
  const tileWidth = Math.max(1, Math.floor((width + GAP) / columns) - GAP)
  return { columns, tileWidth, rowHeight: tileWidth + TEXT_HEIGHT + GAP }
}

/** `size` must be the one of the window's layout. */
export function RunTiles({
  runs,
  hasMore,
  isStale,
  window,
  size,
}: DrawnRunsProps & { readonly size: TileSize }) {
  const { body, width, height, indexes, current, setCurrent } = window
  const { columns, tileWidth, rowHeight } = tileLayout(size, width)
  return (
    // biome-ignore lint/a11y/useSemanticElements: the list omits runs outside the viewport
    <div
      role="list"
      class={`runs-body run-tiles tiles-${size}`}
      aria-label="Runs"
      aria-busy={isStale || undefined}
      ref={body}
      style={{ height: `${height}px` }}
    >
      {indexes.map((index) => {
        const run = runs[index]
        if (run === undefined) return null
        return (
          <RunItem
            key={run.id}
            View={Tile}
            run={run}
            index={index}
            count={hasMore ? -1 : runs.length}
            top={Math.floor(index / columns) * rowHeight}
            left={(index % columns) * (tileWidth + GAP)}
            width={tileWidth}
            isCurrent={index === current}
            onFocus={setCurrent}
          />
        )
      })}
    </div>
  )
}

function Tile({ run, index, count, top, left, width, link, isPlaying, hover }: RunItemProps & DrawnRun) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the list
    <div
      role="listitem"
      class="run-tile"
      aria-posinset={index + 1}
      aria-setsize={count}
      data-index={index}
      data-run={run.id}
      style={{ transform: `translate(${left}px, ${top}px)`, width: `${width}px` }}
      {...hover}
    >
      <Thumbnail key={`${run.id} ${run.status}`} run={run} isPlaying={isPlaying} isLarge />
      <span class="run-prompt">{link}</span>
      <span class="tile-about">
        <RunStatus run={run} />
        <span class="run-time">
          <Time at={run.created_at} />
        </span>
      </span>
    </div>
  )
}
