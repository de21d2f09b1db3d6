/** What a manifest says of each run: one entry with its own output file. Entries may use outputs of other entries. */
import type { MediaSummary, MediaType } from '../../protocol/media.js'
import type { MediaPlace } from '../../protocol/media-parameters.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { addTo } from '../../protocol/parse.js'
import { shortened } from '../../protocol/text.js'
import type { ManifestRow, Models } from './row.js'

export interface ManifestEntry {
  /** Unique in the manifest, in the Unicode form NFC. Also the key of the entry in the lock file. */
  readonly name: string
  /** Name of the run as written, without the number that `count` adds. */
  readonly rowName: string
  /** Where the run is written. The line is counted from 1. */
  readonly at: { readonly line: number }
  readonly kind: Kind
  /** Undefined if the manifest has no model for the run. The settings or the lock file then set it. */
  readonly model: string | undefined
  /** Input as written: local images are paths, and outputs of runs are references. See `inputToSend`. */
  readonly input: ModelInput
  /**
   * Input with each local file replaced by its summary, now and before the document of its model was known: a run that was
   * made with the second is not paid again because a service now describes the model. Those of an entry that uses other runs
   * are unknown until their outputs exist: see `identitiesOf`.
   */
  readonly identities: readonly ModelInput[]
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
  readonly hasMatrix: boolean
  /** In the order of the manifest. */
  readonly entries: readonly ManifestEntry[]
}

/** A source in a media parameter. */
export type MediaReference =
  /** An http(s) or data: URL, sent unchanged, or `run:<id>`. `summary`: what identifies a data: URL. */
  | ({ readonly from: 'url'; readonly text: string; readonly summary?: MediaSummary | undefined } & Placed)
  /** A local file. `path` is absolute. */
  | ({
      readonly from: 'file'
      readonly text: string
      readonly path: string
      readonly summary: MediaSummary
    } & Placed)
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

/** A source whose URL is known only when the run is created. */
export type SentReference = Extract<MediaReference, { readonly from: 'file' | 'row' }>

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
