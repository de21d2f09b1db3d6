/** The layout: rows of equal width in which each picture keeps its own ratio. Without the DOM, so that a test can call it. */

const GAP = 20
/** Two lines of the prompt and one of facts below each picture. */
export const CAPTION_HEIGHT = 70
export const MIN_RATIO = 0.4
export const MAX_RATIO = 3.2

/** The height that rows come near to. */
const targetHeight = (width) => Math.max(210, Math.min(300, 150 + width / 10))

/**
 * A box for each ratio (width by height), in reading order: `row`, `top`, `left`, `width` and `height` of the picture. Of
 * the two places where a row can end, the one that changes its height less is taken.
 */
export function justify(ratios, width) {
  const target = targetHeight(width)
  const boxes = []
  let top = 0
  let row = 0
  for (let start = 0; start < ratios.length; row++) {
    let sum = 0
    let end = start
    const heightOf = (count, total) => (width - GAP * (count - 1)) / total
    while (end < ratios.length && (end === start || heightOf(end - start, sum) > target)) {
      const next = sum + ratios[end]
      const isFull = heightOf(end - start + 1, next) <= target
      const isCloserWithout =
        isFull &&
        end > start &&
        heightOf(end - start, sum) / target < target / heightOf(end - start + 1, next)
      if (isCloserWithout) break
      sum = next
      end++
    }
    const fit = heightOf(end - start, sum)
    // The last row is not stretched, and one upright picture does not fill the screen.
    const height = Math.round(end === ratios.length ? Math.min(fit, target) : Math.min(fit, target * 1.6))
    let left = 0
    for (let at = start; at < end; at++) {
      const isLast = at === end - 1 && height >= Math.floor(fit)
      const own = isLast ? width - left : Math.min(width, Math.round(ratios[at] * height))
      boxes.push({ row, top, left, width: own, height })
      left += own + GAP
    }
    top += height + CAPTION_HEIGHT + GAP
    start = end
  }
  return { boxes, height: Math.max(0, top - GAP) }
}

/** Boxes between two heights: `[first, end)`. Tops grow with the index, so both ends are found by halving. */
export function boxesBetween(boxes, from, to) {
  const firstWhere = (holds) => {
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
    firstWhere((box) => box.top + box.height + CAPTION_HEIGHT >= from),
    firstWhere((box) => box.top > to),
  ]
}

/** The index that an arrow key leads to from `at`; `at` itself at the edge. */
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
