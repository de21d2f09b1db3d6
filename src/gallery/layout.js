/**
 * Lays out pictures in rows of equal width, in which each picture keeps its ratio. Does not use the DOM, so
 * that a test can call it.
 */

const GAP = 20
/** Height of the text below each picture: two lines of the prompt, and one line of details. */
export const CAPTION_HEIGHT = 70
export const MIN_RATIO = 0.4
export const MAX_RATIO = 3.2

/** Target height of the rows. */
const targetHeight = (width) => Math.max(210, Math.min(300, 150 + width / 10))

/**
 * Returns a box for each ratio (width / height), in reading order: `row`, `top`, `left`, `width` and `height`
 * of the picture. A row ends before or after the picture that fills it, whichever gives a height nearer to
 * the target.
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
    // Do not stretch the last row, and do not let one upright picture fill the screen.
    const height = Math.round(end === ratios.length ? Math.min(fit, target) : Math.min(fit, target * 1.6))
    let left = 0
    for (let at = start; at < end; at++) {
      const isLast = at === end - 1 && height >= Math.floor(fit)
      const boxWidth = isLast ? width - left : Math.min(width, Math.round(ratios[at] * height))
      boxes.push({ row, top, left, width: boxWidth, height })
      left += boxWidth + GAP
    }
    top += height + CAPTION_HEIGHT + GAP
    start = end
  }
  return { boxes, height: Math.max(0, top - GAP) }
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
