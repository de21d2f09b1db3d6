/** The order of runs that use other runs. */
import { addTo } from '../../protocol/lists.js'
import { shortened } from '../../protocol/text.js'
import type { ManifestEntry } from './entry.js'
import type { ManifestRow } from './row.js'

export interface RowNode {
  readonly name: string
  /** Names of the rows that it uses. Names of rows outside the list are ignored. */
  readonly sources: readonly string[]
}

/** Returns the names of the entries that an entry uses, without duplicates. */
export const sourcesOf = ({ references }: ManifestEntry): readonly string[] => [
  ...new Set(references.flatMap((each) => (each.from === 'row' ? [each.source] : []))),
]

/**
 * Groups rows into levels. Each row is in a later level than the rows that it uses. Keeps the order within a level. Not
 * recursive: a chain may have thousands of rows.
 */
export function levelsOf<Row extends RowNode>(rows: readonly Row[]): readonly (readonly Row[])[] {
  const names = new Set(rows.map(({ name }) => name))
  const users = new Map<string, Row[]>()
  const missing = new Map<Row, number>()
  for (const row of rows) {
    const sources = row.sources.filter((each) => names.has(each))
    missing.set(row, sources.length)
    for (const source of sources) addTo(users, source, row)
  }
  const levels: (readonly Row[])[] = []
  let level = rows.filter((row) => missing.get(row) === 0)
  while (level.length > 0) {
    levels.push(level)
    level = level
      .flatMap(({ name }) => users.get(name) ?? [])
      .filter((user) => {
        const left = (missing.get(user) ?? 0) - 1
        missing.set(user, left)
        return left === 0
      })
  }
  return levels
}

/** Reports one cycle, if rows use each other. */
export function reportCycle(rows: ReadonlyMap<ManifestEntry, ManifestRow>): void {
  const nodes = [...rows].map(([entry, row]) => ({ name: entry.name, sources: sourcesOf(entry), row }))
  const ordered = new Set(levelsOf(nodes).flat())
  const left = new Map(nodes.flatMap((each) => (ordered.has(each) ? [] : [[each.name, each]])))
  const path: string[] = []
  let [name] = left.keys()
  while (name !== undefined && !path.includes(name)) {
    path.push(name)
    name = left.get(name)?.sources.find((source) => left.has(source))
  }
  if (name === undefined) return
  const cycle = path.slice(path.indexOf(name))
  const shown = shortened([...cycle, name].join(' → '))
  left.get(cycle.at(-1) ?? '')?.row.report(`these runs use each other in a cycle: ${shown}`)
}

/** Returns the names of these rows and of all rows that they need. */
export function withSources(rows: readonly RowNode[], names: Iterable<string>): ReadonlySet<string> {
  const byName = new Map(rows.map((row) => [row.name, row]))
  const found = new Set(names)
  for (const name of found) for (const source of byName.get(name)?.sources ?? []) found.add(source)
  return found
}
