/**
 * The result of reading a manifest: one entry for each run, with its own output file. Entries may use other entries:
 * `row:hero` and `row:hero#2` in `image_urls` are outputs of other runs, resolved once all entries exist. Pure.
 */
import type { MediaSummary } from '../../protocol/media.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { nearest, shortened } from '../../protocol/text.js'
import type { Position, ReportProblem } from './nodes.js'
import type { Models } from './sections.js'

/** A reference in `image_urls`. */
export type ImageReference =
  /** An http(s) or data: URL, sent unchanged. */
  | { readonly from: 'url'; readonly text: string }
  /** `run:<id>`: resolved when the run is created. */
  | { readonly from: 'run'; readonly text: string }
  | { readonly from: 'file'; readonly path: string; readonly summary: MediaSummary }
  | RowReference

/** `row:<name>` or `row:<name>#<n>`: an output of another run of the manifest. */
export interface RowReference {
  readonly from: 'row'
  /** The reference, as written. */
  readonly text: string
  /** Name of the entry whose output it is. */
  readonly source: string
  /** Number of the output, from 1. */
  readonly output: number
}

export interface ManifestEntry {
  /** Unique in the manifest, in the Unicode form NFC. Also the key of the entry in the lock file. */
  readonly name: string
  /** Name of the row, without the number that `count` adds. */
  readonly rowName: string
  /** Number of the run in its row, from 1. More than 1 only with `count`. */
  readonly variant: number
  /** Name of a row with a matrix, as written: `icon-{animal}`. The output, if the row has no name. */
  readonly template: string | undefined
  /** Position of the row. */
  readonly at: Position
  /** Undefined for a model whose kind is not known. */
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the row. The settings or the lock file then set it. */
  readonly model: string | undefined
  /** Input as written: local images are paths, and outputs of rows are references. See `inputToSend`. */
  readonly input: ModelInput
  /**
   * Input with each local image replaced by its summary: two requests are equal if their identity inputs are. That of
   * an entry that uses other rows is unknown until their outputs exist: see `identityInputOf`.
   */
  readonly identityInput: ModelInput
  /** The identity input before the document of its model was known. */
  readonly undocumentedInput?: ModelInput | undefined
  readonly references: readonly ImageReference[]
  /** Kept in the journal; not a part of the input. */
  readonly labels: readonly string[]
  /** Path relative to the manifest, separated by `/`. Ends in `.{ext}` if the extension depends on the output. */
  readonly output: string
}

export interface Manifest {
  /** Path of the manifest, as given by the user. */
  readonly path: string
  /** Absolute path of the manifest's folder. Paths in the manifest are relative to it. */
  readonly folder: string
  readonly models: Models
  /** In the order of the manifest. */
  readonly entries: readonly ManifestEntry[]
}

const ROW = /^row:/i

/** Returns a reference whose name is the whole text, until all names are known. */
export const unresolvedRow = (text: string): RowReference => ({
  from: 'row',
  text,
  source: text.replace(ROW, '').normalize(),
  output: 1,
})

export interface RowUse {
  readonly entry: ManifestEntry
  /** Returns the position of an item of `image_urls`. */
  positionOf(item: number): Position
  readonly report: ReportProblem
}

type ByName = ReadonlyMap<string, ManifestEntry>

/** Maximum number of suggested names. Searching thousands of names for thousands of mistakes would take minutes. */
const MAX_SUGGESTIONS = 100

interface ResolveOptions {
  /** Whether the manifest is CSV, where spaces separate the items of a list. */
  readonly isCsv?: boolean
  /** Whether a row of this name does not exist because of a mistake that was already reported. */
  isReported?(name: string): boolean
}

/**
 * Returns the entries with resolved row references. Reports unknown names, invalid output numbers, videos and cycles.
 */
export function resolveRows(
  uses: readonly RowUse[],
  { isCsv = false, isReported = () => false }: ResolveOptions = {},
): readonly ManifestEntry[] {
  const byName = new Map(uses.map(({ entry }) => [entry.name, entry]))
  const names = [...byName.keys()]
  const suggestions = new Map<string, string | undefined>()
  const suggest = (name: string, own: string): string => {
    const longer = isCsv ? names.find((each) => each.startsWith(`${name} `)) : undefined
    if (longer !== undefined)
      return `. In CSV a list is separated by spaces: give "${shortened(longer, 100)}" a name without spaces`
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
      const name = nameIn(reference.source, byName)
      if (byName.has(name) || !isReported(name)) report(positionOf(item), found)
      return { ...reference, source: '' }
    })
    return { ...entry, references }
  })
  reportCycles(resolved, uses)
  return resolved
}

/** Returns the row name in a reference. The name itself may contain "#". */
function nameIn(source: string, byName: ByName): string {
  const at = byName.has(source) ? -1 : source.lastIndexOf('#')
  return at === -1 ? source : source.slice(0, at)
}

function resolveOne(
  { text, source: written }: RowReference,
  byName: ByName,
  suggest: (name: string) => string,
): RowReference | string {
  const source = nameIn(written, byName)
  const number = source === written ? '1' : written.slice(source.length + 1)
  const shortText = shortened(text, 100)
  if (source.trim() === '') return `"${shortText}" needs the name of a row: row:hero`
  const entry = byName.get(source)
  if (entry === undefined)
    return `"${shortText}": the manifest has no row named "${shortened(source, 100)}"${suggest(source)}`
  if (!/^[1-9]\d{0,3}$/.test(number))
    return `"${shortText}": the number after # must be a whole number, counted from 1`
  if (entry.kind === 'video') return `"${shortText}" is a video; image_urls takes images`
  return { from: 'row', text, source, output: Number(number) }
}

/** Returns the names of the entries that an entry uses, without duplicates. */
export const sourcesOf = ({ references }: ManifestEntry): readonly string[] => [
  ...new Set(references.flatMap((each) => (each.from === 'row' ? [each.source] : []))),
]

interface Visit {
  readonly name: string
  readonly sources: readonly string[]
  next: number
}

/** Reports each cycle once. Not recursive: a chain may have thousands of rows. */
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
  const names = left > 0 ? [...cycle.slice(0, MAX_SHOWN - 1), `… ${left} more …`, ...cycle.slice(-1)] : cycle
  return `these rows use each other in a cycle: ${names.join(' → ')}`
}
