/** Which rows of a long list are in the document. Pure; all rows have one height. */

export interface RowView {
  readonly count: number
  readonly rowHeight: number
  /** Where the visible part begins, in pixels from the top of the first row; negative above it. */
  readonly top: number
  readonly height: number
}

export interface RowRange {
  readonly first: number
  /** Without this one. */
  readonly end: number
}

/** Rows above and below the visible part that are drawn too, so that fast scrolling shows no gap. */
const OVERSCAN = 8

export function visibleRows({ count, rowHeight, top, height }: RowView, overscan = OVERSCAN): RowRange {
  const first = clamp(Math.floor(top / rowHeight) - overscan, 0, count)
  const end = clamp(Math.ceil((top + height) / rowHeight) + overscan, first, count)
  return { first, end }
}

/** The distance to scroll that brings a row into view, with one row of context; 0 when it is in view. */
export function scrollToShow(index: number, { rowHeight, top, height }: RowView): number {
  const start = index * rowHeight
  if (start < top + rowHeight) return Math.min(0, start - rowHeight - top)
  return Math.max(0, start + 2 * rowHeight - (top + height))
}

/** Whether the next page should be read: the end is less than three screens away. */
export const isNearEnd = ({ count, rowHeight, top, height }: RowView): boolean =>
  count * rowHeight - (top + height) < 3 * height

const NARROW_WIDTH = 720

/** Must be the heights of runs.css. */
export const rowHeightOf = (width: number): number => (width < NARROW_WIDTH ? 92 : 68)

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value))
