/** The arithmetic of the bar chart. Pure. */

/** Their halves are whole from 4 on. */
const STEPS = [1, 2, 4, 10] as const

/** The value at the top of an axis: the next of 4, 10, 20, 40, 100 … that has room for all. */
export function topOf(values: readonly number[]): number {
  const highest = Math.max(4, ...values)
  const power = 10 ** Math.floor(Math.log10(highest))
  return (STEPS.find((step) => step * power >= highest) ?? 10) * power
}

export interface Bar {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface Area {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** One bar per value; a value above zero is at least 2 high, so that it is seen. */
export function barsOf(values: readonly number[], top: number, area: Area): readonly Bar[] {
  const slot = values.length === 0 ? 0 : area.width / values.length
  const width = Math.max(1, Math.min(28, slot * 0.7))
  return values.map((value, at) => {
    const height = value <= 0 ? 0 : Math.max(2, (value / top) * area.height)
    return {
      x: area.left + slot * at + (slot - width) / 2,
      y: area.top + area.height - height,
      width,
      height,
    }
  })
}

/** Which days have a label: the last, and those before it with at least `minGap` between two. */
export function labelledDays(count: number, width: number, minGap: number): readonly number[] {
  if (count === 0 || width <= 0) return []
  const step = Math.max(1, Math.ceil((minGap * count) / width))
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => count - 1 - at * step).reverse()
}
