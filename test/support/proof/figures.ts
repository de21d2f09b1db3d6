import { afterAll } from 'vitest'

export type Figures = Readonly<Record<string, number | string>>

/**
 * Returns a function that records the result of a case. At the end, prints a table for bench/results.md. Call it at the
 * top of a proof.
 */
export function tableOfFigures(): (name: string, figures: Figures) => void {
  const rows: string[] = []
  afterAll(() => void process.stdout.write(`${['| case | figures |', '|---|---|', ...rows].join('\n')}\n`))
  return (name, figures) => {
    const cells = Object.entries(figures).map(([what, figure]) => `${what}: ${figure.toLocaleString('en')}`)
    rows.push(`| ${name} | ${cells.join('; ')} |`)
  }
}
