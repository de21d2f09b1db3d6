/**
 * Rows that use other rows: `row:hero` and `row:hero#2` in `image_urls` are outputs of other runs of the manifest. They are
 * resolved once all entries exist. Pure.
 */
import { nearest } from '../../protocol/nearest.js'
import { shortened } from '../../protocol/text.js'
import type { ManifestEntry, RowReference } from './manifest-entry.js'
import type { Position, ReportProblem } from './position.js'

const ROW = /^row:/i

export const isRowReference = (source: string): boolean => ROW.test(source)

/** Before all names are known: the whole text is taken for the name. */
export const unresolvedRow = (text: string): RowReference => ({
  from: 'row',
  text,
  source: text.replace(ROW, ''),
  output: 1,
})

export interface RowUse {
  readonly entry: ManifestEntry
  /** Position of one of its `image_urls`. */
  positionOf(item: number): Position
  readonly report: ReportProblem
}

type ByName = ReadonlyMap<string, ManifestEntry>

/** A search among thousands of names for each of thousands of mistakes would take minutes. */
const MAX_SUGGESTIONS = 100

/** The entries with their references resolved. Reports unknown names, wrong outputs, videos and cycles. */
export function resolveRows(uses: readonly RowUse[]): readonly ManifestEntry[] {
  const byName = new Map(uses.map(({ entry }) => [entry.name, entry]))
  const names = [...byName.keys()]
  const suggestions = new Map<string, string | undefined>()
  const suggest = (name: string, own: string): string => {
    if (!suggestions.has(name) && suggestions.size < MAX_SUGGESTIONS)
      suggestions.set(name, nearest(name, names))
    const near = suggestions.get(name)
    return near === undefined || near === own ? '' : `. Did you mean "row:${near}"?`
  }
  const resolved = uses.map(({ entry, positionOf, report }) => {
    if (!entry.references.some(({ from }) => from === 'row')) return entry
    const references = entry.references.map((reference, item) => {
      if (reference.from !== 'row') return reference
      const found = resolveOne(reference, byName, (name) => suggest(name, entry.name))
      if (typeof found !== 'string') return found
      report(positionOf(item), found)
      return { ...reference, source: '' }
    })
    return { ...entry, references }
  })
  reportCycles(resolved, uses)
  return resolved
}

function resolveOne(
  { text, source: written }: RowReference,
  byName: ByName,
  suggest: (name: string) => string,
): RowReference | string {
  // A name may itself contain "#".
  const at = byName.has(written) ? -1 : written.lastIndexOf('#')
  const source = at === -1 ? written : written.slice(0, at)
  const number = at === -1 ? '1' : written.slice(at + 1)
  const shown = shortened(text, 100)
  if (source.trim() === '') return `"${shown}" needs the name of a row: row:hero`
  const entry = byName.get(source)
  if (entry === undefined)
    return `"${shown}": the manifest has no row named "${shortened(source, 100)}"${suggest(source)}`
  if (!/^[1-9]\d{0,3}$/.test(number))
    return `"${shown}": the number after # must be a whole number, counted from 1`
  if (entry.kind === 'video') return `"${shown}" is a video; image_urls takes images`
  return { from: 'row', text, source, output: Number(number) }
}

/** Names of the entries that an entry uses, each once. */
export const sourcesOf = ({ references }: Pick<ManifestEntry, 'references'>): readonly string[] => [
  ...new Set(references.flatMap((each) => (each.from === 'row' ? [each.source] : []))),
]

interface Visit {
  readonly name: string
  readonly sources: readonly string[]
  next: number
}

/** One problem for each cycle. Without recursion: a chain may have thousands of rows. */
function reportCycles(entries: readonly ManifestEntry[], uses: readonly RowUse[]): void {
  const indexOf = new Map(entries.map(({ name }, index) => [name, index]))
  const visitOf = (name: string): Visit => {
    const entry = entries[indexOf.get(name) ?? -1]
    return { name, sources: entry === undefined ? [] : sourcesOf(entry), next: 0 }
  }
  const done = new Set<string>()
  const reported = new Set<string>()
  for (const { name: root } of entries) {
    const path: Visit[] = done.has(root) ? [] : [visitOf(root)]
    const open = new Set(path.map(({ name }) => name))
    for (let visit = path.at(-1); visit !== undefined; visit = path.at(-1)) {
      const source = visit.sources[visit.next++]
      if (source === undefined) {
        path.pop()
        open.delete(visit.name)
        done.add(visit.name)
      } else if (open.has(source)) {
        const cycle = path.slice(path.findIndex(({ name }) => name === source)).map(({ name }) => name)
        if (cycle.some((name) => reported.has(name))) continue
        for (const name of cycle) reported.add(name)
        reportIn(visit.name, source, cycleMessage([...cycle, source]))
      } else if (!done.has(source)) {
        path.push(visitOf(source))
        open.add(source)
      }
    }
  }

  function reportIn(name: string, source: string, message: string): void {
    const index = indexOf.get(name) ?? 0
    const item = entries[index]?.references.findIndex((each) => each.from === 'row' && each.source === source)
    const use = uses[index]
    use?.report(use.positionOf(item ?? 0), message)
  }
}

const MAX_SHOWN = 10

function cycleMessage(cycle: readonly string[]): string {
  if (cycle.length === 2) return `the row "${cycle[0]}" uses its own output`
  const left = cycle.length - MAX_SHOWN
  const shown = left > 0 ? [...cycle.slice(0, MAX_SHOWN - 1), `… ${left} more …`, ...cycle.slice(-1)] : cycle
  return `these rows use each other in a cycle: ${shown.join(' → ')}`
}
