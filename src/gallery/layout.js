/**
 * Lays out pictures in rows of equal width, in which each picture keeps its ratio. Does not use the DOM, so
 * that a test can call it.
 */

/** Height of the text below each picture: two lines of the prompt, and one line of details. */
export const CAPTION_HEIGHT = 70
/** Height of the heading of a section. */
export const HEADING_HEIGHT = 56
export const MIN_RATIO = 0.4
export const MAX_RATIO = 3.2
/** Distance between the variants of a unit, which are one frame. */
const VARIANT_GAP = 3
const SECTION_GAP = 24

/** Returns the distances and heights for the width of the grid. A phone shows at most two units beside each other. */
function measuresOf(width) {
  const isPhone = width < 600
  const target = Math.max(210, Math.min(300, 150 + width / 10))
  return {
    gap: isPhone ? 8 : 20,
    target,
    // One upright picture does not fill the screen.
    max: target * (isPhone ? 1.8 : 1.6),
    maxUnits: isPhone ? 2 : Number.POSITIVE_INFINITY,
    // A phone is filled to its edges. A wide window does not enlarge the last pictures.
    maxLast: target * (isPhone ? 1.8 : 1),
  }
}

const sumOf = (ratios) => ratios.reduce((sum, ratio) => sum + ratio, 0)

/** Splits the variants of a unit into lines of the same number, if one line would be much lower than the other rows. */
function linesOf(ratios, width, target) {
  const sum = sumOf(ratios)
  const height = (width - VARIANT_GAP * (ratios.length - 1)) / sum
  if (ratios.length === 1 || height >= 0.5 * target) return [ratios]
  const meanWidth = (target * sum) / ratios.length
  const columns = Math.max(1, Math.round((width + VARIANT_GAP) / (meanWidth + VARIANT_GAP)))
  const perLine = Math.ceil(ratios.length / Math.ceil(ratios.length / columns))
  const starts = ratios.flatMap((_, at) => (at % perLine === 0 ? [at] : []))
  return starts.map((start) => ratios.slice(start, start + perLine))
}

/**
 * Returns a box for each ratio (width / height), in reading order: `row`, `top`, `left`, `width` and `height`
 * of the picture. The ratios of a unit are variants, which are beside each other in one frame. `caption` is the width
 * of the text below the unit; only one box of the unit has it. A row ends before or after the unit that fills it,
 * whichever gives a height nearer to the target.
 */
export function justify(units, width) {
  const { gap, target, max, maxUnits, maxLast } = measuresOf(width)
  const boxes = []
  let top = 0
  let row = 0
  const split = units.map((unit) => linesOf(unit, width, target))

  function addRow(rowUnits, height, { isInner = false, captionWidth } = {}) {
    let exactLeft = 0
    for (const unit of rowUnits) {
      const first = boxes.length
      for (const ratio of unit) {
        // Round the edges, not the widths, so that a full row ends at the edge of the page.
        const left = Math.round(exactLeft)
        const right = Math.min(width, Math.round(exactLeft + ratio * height))
        boxes.push({ row, top, left, width: right - left, height: Math.round(height) })
        exactLeft += ratio * height + VARIANT_GAP
      }
      exactLeft += gap - VARIANT_GAP
      if (!isInner)
        boxes[first].caption =
          captionWidth ?? Math.min(width, Math.round(exactLeft - gap)) - boxes[first].left
    }
    row++
    top += Math.round(height) + (isInner ? VARIANT_GAP : CAPTION_HEIGHT + gap)
  }

  for (let start = 0; start < units.length; ) {
    const lines = split[start]
    if (lines.length > 1) {
      // Variants have the same height, so that they can be compared.
      const fits = lines.map((line) => (width - VARIANT_GAP * (line.length - 1)) / sumOf(line))
      const height = Math.min(max, ...fits)
      for (const [at, line] of lines.entries())
        addRow([line], height, { isInner: at < lines.length - 1, captionWidth: width })
      start++
      continue
    }
    let sum = 0
    let gaps = -gap
    let end = start
    const heightWith = (unit) => (width - gaps - gap - VARIANT_GAP * (unit.length - 1)) / (sum + sumOf(unit))
    let fit = Number.POSITIVE_INFINITY
    while (end < units.length && end - start < maxUnits && split[end].length === 1 && fit > target) {
      const next = heightWith(units[end])
      if (end > start && next <= target && fit / target < target / next) break
      fit = next
      gaps += gap + VARIANT_GAP * (units[end].length - 1)
      sum += sumOf(units[end])
      end++
    }
    addRow(units.slice(start, end), Math.min(fit, end === units.length ? maxLast : max))
    start = end
  }
  return { boxes, height: Math.max(0, top - gap) }
}

/**
 * Lays out sections, each a list of units, below each other. In the result, `sections` has the place of each section,
 * and the range `[first, end)` of its boxes.
 */
export function layOutSections(sections, width, { headingHeight }) {
  const boxes = []
  const placed = []
  let top = 0
  for (const units of sections) {
    const inner = justify(units, width)
    const [first, row] = [boxes.length, (boxes.at(-1)?.row ?? -1) + 1]
    for (const box of inner.boxes)
      boxes.push({ ...box, row: box.row + row, top: box.top + top + headingHeight, section: placed.length })
    const height = headingHeight + inner.height
    placed.push({ top, height, first, end: boxes.length })
    top += height + SECTION_GAP
  }
  return { boxes, sections: placed, height: Math.max(0, top - SECTION_GAP) }
}

/** Returns the number of columns in which pictures side by side are largest. */
export function columnsFor(ratios, width, height) {
  let best = { columns: 1, area: 0 }
  for (let columns = 1; columns <= ratios.length; columns++) {
    const [cellWidth, cellHeight] = [width / columns, height / Math.ceil(ratios.length / columns)]
    const area = sumOf(ratios.map((ratio) => Math.min(cellWidth ** 2 / ratio, cellHeight ** 2 * ratio)))
    if (area > best.area) best = { columns, area }
  }
  return best.columns
}

/**
 * Returns the range `[first, end)` of the boxes between two heights. `top` increases with the index, so a
 * binary search finds both ends.
 */
export function boxesBetween(boxes, from, to) {
  const firstIndexWhere = (holds) => {
    let low = 0
    let high = boxes.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (holds(boxes[middle])) high = middle
      else low = middle + 1
    }
    return low
  }
  return [
    firstIndexWhere((box) => box.top + box.height + CAPTION_HEIGHT >= from),
    firstIndexWhere((box) => box.top > to),
  ]
}

/** Returns the index that an arrow key moves to from `at`, or `at` if there is no box in this direction. */
export function neighbour(boxes, at, key) {
  const box = boxes[at]
  if (key === 'Home') return 0
  if (key === 'End') return boxes.length - 1
  if (key === 'ArrowLeft') return Math.max(0, at - 1)
  if (key === 'ArrowRight') return Math.min(boxes.length - 1, at + 1)
  const row = box.row + (key === 'ArrowUp' ? -1 : 1)
  const middle = box.left + box.width / 2
  const distance = (each) => Math.abs(each.left + each.width / 2 - middle)
  let best = at
  const step = key === 'ArrowUp' ? -1 : 1
  for (let next = at + step; next >= 0 && next < boxes.length; next += step) {
    if (boxes[next].row === box.row) continue
    if (boxes[next].row !== row) break
    if (best === at || distance(boxes[next]) < distance(boxes[best])) best = next
  }
  return best
}
