/** Which rows wait for the outputs of others that are on their way. Pure. */
import { chainsBehind, dependentsOf, type RowNode } from '../plan/row-order.js'
import type { Active } from './row-result.js'

export interface WaitingRows {
  /** Those that wait for none. */
  readonly free: readonly Active[]
  /** Length of the longest chain of rows that waits for a row. */
  behind(name: string): number
  /** The output of a row is there: the rows that waited for it alone. */
  release(name: string): readonly Active[]
  /** It will not be there: all rows that needed it, directly or not. */
  block(name: string): readonly Active[]
}

interface Waiting extends RowNode {
  readonly step: Active
  /** Its sources that are still on their way. */
  readonly open: Set<string>
}

/** A download needs no output of another row. */
export function createWaitingRows(steps: readonly Active[]): WaitingRows {
  const active = new Set(steps.map(({ entry }) => entry.name))
  const rows = steps.map((step): Waiting => {
    const sources = step.action.do === 'create' ? step.sources.filter((name) => active.has(name)) : []
    return { name: step.entry.name, sources, step, open: new Set(sources) }
  })
  const dependents = dependentsOf(rows)
  const chains = chainsBehind(rows)
  const blocked = new Set<string>()
  return {
    free: rows.filter(({ open }) => open.size === 0).map(({ step }) => step),
    behind: (name) => chains.get(name) ?? 0,
    release: (name) =>
      (dependents.get(name) ?? [])
        .filter((row) => row.open.delete(name) && row.open.size === 0 && !blocked.has(row.name))
        .map(({ step }) => step),
    block(name) {
      const found = new Set<Waiting>()
      const add = (source: string) => {
        for (const row of dependents.get(source) ?? [])
          if (!blocked.has(row.name)) {
            blocked.add(row.name)
            found.add(row)
          }
      }
      add(name)
      for (const row of found) add(row.name)
      return [...found].map(({ step }) => step)
    },
  }
}
