/** Orders rows that use other rows. Pure. Not recursive: a chain may have thousands of rows. */
import { addTo } from '../../protocol/lists.js'

export interface RowNode {
  readonly name: string
  /** Names of the rows that it uses. Names of rows outside the list are ignored. */
  readonly sources: readonly string[]
}

/** Groups rows into levels. Each row is in a later level than the rows that it uses. Keeps the order within a level. */
export function levelsOf<Row extends RowNode>(rows: readonly Row[]): readonly (readonly Row[])[] {
  const dependents = dependentsOf(rows)
  const names = new Set(rows.map(({ name }) => name))
  const open = new Map(
    rows.map(({ name, sources }) => [name, sources.filter((each) => names.has(each)).length]),
  )
  const levels: Row[][] = []
  let level = rows.filter(({ name }) => open.get(name) === 0)
  while (level.length > 0) {
    levels.push(level)
    const next: Row[] = []
    for (const { name } of level)
      for (const dependent of dependents.get(name) ?? []) {
        const left = (open.get(dependent.name) ?? 0) - 1
        open.set(dependent.name, left)
        if (left === 0) next.push(dependent)
      }
    level = next
  }
  return levels
}

/** Returns the rows that use each row. */
export function dependentsOf<Row extends RowNode>(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const dependents = new Map<string, Row[]>()
  for (const row of rows) for (const source of row.sources) addTo(dependents, source, row)
  return dependents
}

/** Returns the names of these rows and of all rows that they need. */
export function withSources(rows: readonly RowNode[], names: Iterable<string>): ReadonlySet<string> {
  const byName = new Map(rows.map((row) => [row.name, row]))
  const found = new Set(names)
  for (const name of found) for (const source of byName.get(name)?.sources ?? []) found.add(source)
  return found
}
