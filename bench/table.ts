/** What the benchmarks print: medians and other quantiles, in rows of Markdown. */

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** `share` is from 0 to 1. Not between two values: the lower one. */
export const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? 0

export const row = (...cells: readonly (string | number)[]): void => console.log(`| ${cells.join(' | ')} |`)
