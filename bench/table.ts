/** What the benchmarks print: medians, in rows of Markdown. */

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

export const row = (...cells: readonly (string | number)[]): void => console.log(`| ${cells.join(' | ')} |`)
