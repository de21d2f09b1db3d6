import { afterAll } from 'vitest'

export type Figures = Readonly<Record<string, number | string>>

/** Call at the top of a proof, and the result for each case: a table for bench/results.md is printed at the end. */
export function tableOfFigures(): (name: string, figures: Figures) => void {
  const rows: string[] = []
  afterAll(() => void process.stdout.write(`${['| case | figures |', '|---|---|', ...rows].join('\n')}\n`))
  return (name, figures) => {
    const cells = Object.entries(figures).map(([what, figure]) => `${what}: ${figure.toLocaleString('en')}`)
    rows.push(`| ${name} | ${cells.join('; ')} |`)
  }
}
