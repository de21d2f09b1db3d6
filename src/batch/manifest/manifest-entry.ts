/**
 * The result of reading a manifest: one entry for each run, with its own output file. Entries may use other entries:
 * `row:hero` and `row:hero#2` in a media parameter are outputs of other runs, resolved once all entries exist. Pure.
 */

import { MEDIA_NOUNS, type MediaSummary, type MediaType } from '../../protocol/media.js'
import type { MediaPlace } from '../../protocol/media-parameters.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { nearest, shortened } from '../../protocol/text.js'
import { levelsOf } from './row-order.js'
import type { Models } from './sections.js'

/** A source in a media parameter. */
export type MediaReference =
  /** An http(s) or data: URL, sent unchanged. `summary`: what identifies a data: URL. */
  | ({ readonly from: 'url'; readonly text: string; readonly summary?: MediaSummary | undefined } & Placed)
  /** `run:<id>`: resolved when the run is created. */
  | ({ readonly from: 'run'; readonly text: string } & Placed)
  | ({ readonly from: 'file'; readonly path: string; readonly summary: MediaSummary } & Placed)
  | RowReference

interface Placed {
  readonly place: MediaPlace
}

/** `row:<name>` or `row:<name>#<n>`: an output of another run of the manifest. */
export interface RowReference extends Placed {
  readonly from: 'row'
  /** What the parameter takes. */
  readonly type: MediaType
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
  /** Name of the run as written, without the number that `count` adds. */
  readonly rowName: string
  /** Name of a run with a matrix, as written: `icon-{animal}`. The output, if the run has no name. */
  readonly template: string | undefined
  /** Where the run is written. The line is counted from 1. */
  readonly at: { readonly line: number }
  /** Undefined for a model whose kind is not known. */
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the run. The settings or the lock file then set it. */
  readonly model: string | undefined
  /** Input as written: local images are paths, and outputs of runs are references. See `inputToSend`. */
  readonly input: ModelInput
  /**
   * Input with each local image replaced by its summary: two requests are equal if their identity inputs are. That of
   * an entry that uses other runs is unknown until their outputs exist: see `identityInputOf`.
   */
  readonly identityInput: ModelInput
  /** The identity input before the document of its model was known. */
  readonly undocumentedInput?: ModelInput | undefined
  readonly references: readonly MediaReference[]
  /** Names of the media parameters of its model. */
  readonly media: readonly string[]
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
export const unresolvedRow = (text: string): Omit<RowReference, 'place' | 'type'> => ({
  from: 'row',
  text,
  source: text.replace(ROW, '').normalize(),
  output: 1,
})

export interface RowUse {
  readonly entry: ManifestEntry
  /** Reports a problem with a source. */
  report(place: MediaPlace, message: string): void
}

type ByName = ReadonlyMap<string, ManifestEntry>

/** Maximum number of suggested names. Searching thousands of names for thousands of mistakes would take minutes. */
const MAX_SUGGESTIONS = 100

/**
 * Returns the entries with resolved references. Reports unknown names, invalid output numbers, videos and cycles.
 * `isIncomplete`: runs are missing because of mistakes that were reported, so that an unknown name may be one of theirs.
 */
export function resolveRows(uses: readonly RowUse[], isIncomplete: boolean): readonly ManifestEntry[] {
  const byName = new Map(uses.map(({ entry }) => [entry.name, entry]))
  let suggestions = 0
  const suggest = (name: string, own: string): string => {
    const near = suggestions++ < MAX_SUGGESTIONS ? nearest(name, [...byName.keys()]) : undefined
    return near === undefined || near === own ? '' : `. Did you mean "row:${near}"?`
  }
  const resolved = uses.map(({ entry, report }) => {
    if (!entry.references.some(({ from }) => from === 'row')) return entry
    const references = entry.references.map((reference) => {
      if (reference.from !== 'row') return reference
      const found = resolveOne(reference, byName, (name) => suggest(name, entry.name))
      if (typeof found !== 'string') return found
      if (!isIncomplete || byName.has(nameIn(reference.source, byName)))
        report(reference.place, `${reference.place.parameter}: ${found}`)
      return { ...reference, source: '' }
    })
    return { ...entry, references }
  })
  reportCycles(resolved, uses)
  return resolved
}

/** Returns the name of the run in a reference. The name itself may contain "#". */
function nameIn(source: string, byName: ByName): string {
  const at = byName.has(source) ? -1 : source.lastIndexOf('#')
  return at === -1 ? source : source.slice(0, at)
}

function resolveOne(
  reference: RowReference,
  byName: ByName,
  suggest: (name: string) => string,
): RowReference | string {
  const { text, source: written, type } = reference
  const source = nameIn(written, byName)
  const number = source === written ? '1' : written.slice(source.length + 1)
  const shortText = shortened(text, 100)
  if (source.trim() === '') return `"${shortText}" needs the name of a run: row:hero`
  const entry = byName.get(source)
  if (entry === undefined)
    return `"${shortText}": the manifest has no run named "${shortened(source, 100)}"${suggest(source)}`
  if (!/^[1-9]\d{0,3}$/.test(number))
    return `"${shortText}": the number after # must be a whole number, counted from 1`
  if (entry.kind !== undefined && type !== 'file' && entry.kind !== type)
    return `"${shortText}" is ${MEDIA_NOUNS[entry.kind]}, not ${MEDIA_NOUNS[type]}`
  return { ...reference, source, output: Number(number) }
}

/** Returns the names of the entries that an entry uses, without duplicates. */
export const sourcesOf = ({ references }: ManifestEntry): readonly string[] => [
  ...new Set(references.flatMap((each) => (each.from === 'row' ? [each.source] : []))),
]

/** Maximum number of cycles that are reported: each needs another search. */
const MAX_CYCLES = 20

/** Reports each cycle once: follows the entries that no order contains, and leaves them out of the next one. */
function reportCycles(entries: readonly ManifestEntry[], uses: readonly RowUse[]): void {
  const indexOf = new Map(entries.map(({ name }, index) => [name, index]))
  let left = entries.map((entry) => ({ name: entry.name, sources: sourcesOf(entry) }))
  for (let cycles = 0; cycles < MAX_CYCLES; cycles++) {
    const ordered = new Set(levelsOf(left).flat())
    left = left.filter((row) => !ordered.has(row))
    const sources = new Map(left.map((row) => [row.name, row.sources]))
    const [start] = left
    if (start === undefined) return
    const path: string[] = []
    let { name } = start
    for (; !path.includes(name); name = sources.get(name)?.find((each) => sources.has(each)) ?? name)
      path.push(name)
    const cycle = path.slice(path.indexOf(name))
    const index = indexOf.get(cycle.at(-1) ?? '') ?? 0
    const used = entries[index]?.references.find((each) => each.from === 'row' && each.source === name)
    uses[index]?.report(used?.place ?? { parameter: '' }, cycleMessage([...cycle, name]))
    left = left.filter((row) => !cycle.includes(row.name))
  }
}

const MAX_SHOWN = 10

function cycleMessage(cycle: readonly string[]): string {
  if (cycle.length === 2) return `the run "${cycle[0]}" uses its own output`
  const more = cycle.length - MAX_SHOWN
  const names = more > 0 ? [...cycle.slice(0, MAX_SHOWN - 1), `… ${more} more …`, ...cycle.slice(-1)] : cycle
  return `these runs use each other in a cycle: ${names.join(' → ')}`
}
