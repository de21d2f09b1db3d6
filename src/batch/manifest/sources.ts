/**
 * Finds the sources in the media parameters of the runs. Local files are checked by their bytes, and identified by their
 * hash. `row:hero` and `row:hero#2` are outputs of other runs, resolved once all runs are known.
 */
import { resolve } from 'node:path'
import { writeJson } from '../../protocol/json.js'
import { addTo } from '../../protocol/lists.js'
import { MEDIA_NOUNS, type MediaSummary, type MediaType, sourceFormOf } from '../../protocol/media.js'
import { IMAGE_URLS, type MediaPlace, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { nearest, shortened } from '../../protocol/text.js'
import type { ManifestEntry, MediaReference, RowReference, SentReference } from './entry.js'
import type { Path } from './parse.js'
import type { ManifestRow } from './row.js'

export interface MediaRules {
  /** Returns what identifies a local file, or why it cannot be sent: a text that begins with the path as written. */
  readMedia(path: string, shown: string, type: MediaType): Promise<MediaSummary | string>
  /** Returns what identifies a data: URL. Undefined for a text that cannot be decoded. */
  summaryOf(url: string): MediaSummary | undefined
  readonly maxBodyBytes: number
  /** Called with the absolute path of each local file, before it is read. */
  onMedia?(path: string, parameter: string): void
}

/** Returns why the file at an absolute path cannot be used, if that is known without reading it. */
type ProblemOfPath = (path: string, shown: string) => string | undefined

/** Reads the sources of the runs, and each local file once. */
export class MediaReader {
  readonly #folder: string
  readonly #rules: MediaRules
  readonly #seen = new Map<string, Promise<MediaSummary | string>>()

  constructor(folder: string, rules: MediaRules) {
    this.#folder = folder
    this.#rules = rules
  }

  async referencesOf(row: ManifestRow, problemOf: ProblemOfPath): Promise<readonly MediaReference[]> {
    const references: MediaReference[] = []
    for (const { value, ...place } of mediaSources(row.input, row.media.keys())) {
      // Without a document, a whole input may have anything in this place.
      if (typeof value !== 'string') continue
      const type = row.media.get(place.parameter) ?? 'file'
      const found = await this.#read(value, place, type, problemOf)
      if (typeof found === 'string') row.report(`${place.parameter}: ${found}`, ...pathOf(row, place))
      else references.push(found)
    }
    const bytes = bytesToSend(row.input, references)
    const { maxBodyBytes } = this.#rules
    if (bytes > maxBodyBytes)
      row.report(
        `the files need a request of ${bytes} bytes, and a request may have at most ${maxBodyBytes / 1024 / 1024} MiB`,
        references.find(({ from }) => from === 'file')?.place.parameter ?? 'input',
      )
    return references
  }

  /** Returns the reference, or why it cannot be used. */
  async #read(
    text: string,
    place: MediaPlace,
    type: MediaType,
    problemOf: ProblemOfPath,
  ): Promise<MediaReference | string> {
    switch (sourceFormOf(text)) {
      case 'blank':
        return 'a source is blank'
      case 'invalid url':
        return `"${shortened(text, 100)}" is not a valid URL`
      case 'standard input':
        return 'a manifest cannot read a file from standard input'
      case 'data':
        // Lock files of earlier versions have the text of all others: the run is not paid again for it.
        return {
          from: 'url',
          place,
          text,
          summary: place.parameter === IMAGE_URLS ? this.#rules.summaryOf(text) : undefined,
        }
      case 'url':
        return { from: 'url', place, text }
      case 'run':
        return { from: 'run', place, text }
      case 'row':
        return { from: 'row', place, type, text, source: text.replace(/^row:/i, '').normalize(), output: 1 }
      default: {
        const path = resolve(this.#folder, text)
        const summary = problemOf(path, text) ?? (await this.#readOnce(path, text, place, type))
        return typeof summary === 'string' ? summary : { from: 'file', place, path, summary }
      }
    }
  }

  #readOnce(path: string, shown: string, { parameter }: MediaPlace, type: MediaType) {
    const key = `${type} ${shown}`
    const known = this.#seen.get(key)
    if (known !== undefined) return known
    this.#rules.onMedia?.(path, parameter)
    const read = this.#rules.readMedia(path, shown, type)
    this.#seen.set(key, read)
    return read
  }
}

/** Where a source of the run is written. */
const pathOf = ({ hasOwnInput }: ManifestRow, { parameter, entry }: MediaPlace): Path => [
  ...(hasOwnInput ? ['input'] : []),
  parameter,
  ...(entry === undefined ? [] : [entry]),
]

/** Returns the approximate size of the request body in bytes. Base64 turns 3 bytes into 4. */
const bytesToSend = (input: ModelInput, references: readonly MediaReference[]): number =>
  references.reduce(
    (sum, each) => sum + (each.from === 'file' ? 4 * Math.ceil(each.summary.bytes / 3) + 30 : 0),
    Buffer.byteLength(writeJson(input)),
  )

/** Returns the content that identifies a source: its summary, or its text. Not for outputs of rows. */
export function contentOf(reference: MediaReference): MediaSummary | string {
  if (reference.from === 'file') return reference.summary
  return (reference.from === 'url' ? reference.summary : undefined) ?? reference.text
}

/** Returns the input with the content of each source in its place. */
export const withSummaries = (input: ModelInput, references: readonly MediaReference[]): ModelInput =>
  withMedia(
    input,
    references.map((each) => ({ ...each.place, value: contentOf(each) })),
  )

/**
 * Returns the input to send for an entry. `urlOf` reads local files only now, since all files of a manifest may not fit
 * into memory, and finds the outputs of other rows.
 */
export async function inputToSend(
  { input, references }: ManifestEntry,
  urlOf: (reference: SentReference) => Promise<string>,
): Promise<ModelInput> {
  const urls = []
  for (const each of references)
    if (each.from === 'row' || each.from === 'file') urls.push({ ...each.place, value: await urlOf(each) })
  return urls.length === 0 ? input : withMedia(input, urls)
}

type ByName = ReadonlyMap<string, ManifestEntry>

/** Maximum number of suggested names. Searching thousands of names for thousands of mistakes would take minutes. */
const MAX_SUGGESTIONS = 100

/**
 * Returns the entries with resolved references. Reports unknown names, invalid output numbers, videos and cycles.
 * `isIncomplete`: runs are missing because of mistakes that were reported, so that an unknown name may be one of theirs.
 */
export function resolveRows(
  entries: ReadonlyMap<ManifestEntry, ManifestRow>,
  isIncomplete: boolean,
): readonly ManifestEntry[] {
  const byName = new Map([...entries.keys()].map((entry) => [entry.name, entry]))
  let suggestions = 0
  const suggest = (name: string, own: string) => {
    const near = suggestions++ < MAX_SUGGESTIONS ? nearest(name, [...byName.keys()]) : undefined
    return near === undefined || near === own ? '' : `. Did you mean "row:${near}"?`
  }
  const resolved = [...entries].map(([entry, row]) => {
    if (!entry.references.some(({ from }) => from === 'row')) return entry
    const references = entry.references.map((reference) => {
      if (reference.from !== 'row') return reference
      const found = resolveRow(reference, byName, (name) => suggest(name, entry.name))
      if (typeof found !== 'string') return found
      const { place } = reference
      if (!isIncomplete || byName.has(nameIn(reference.source, byName)))
        row.report(`${place.parameter}: ${found}`, ...pathOf(row, place))
      return { ...reference, source: '' }
    })
    return { ...entry, references }
  })
  reportCycle(resolved, [...entries.values()])
  return resolved
}

/** Returns the name of the run in a reference. The name itself may contain "#". */
function nameIn(source: string, byName: ByName): string {
  const at = byName.has(source) ? -1 : source.lastIndexOf('#')
  return at === -1 ? source : source.slice(0, at)
}

/** Returns the resolved reference, or why it cannot be used. */
function resolveRow(
  reference: RowReference,
  byName: ByName,
  suggest: (name: string) => string,
): RowReference | string {
  const { source: written, type } = reference
  const source = nameIn(written, byName)
  const number = source === written ? '1' : written.slice(source.length + 1)
  const shown = `"${shortened(reference.text, 100)}"`
  if (source.trim() === '') return `${shown} needs the name of a run: row:hero`
  const entry = byName.get(source)
  if (entry === undefined)
    return `${shown}: the manifest has no run named "${shortened(source, 100)}"${suggest(source)}`
  if (!/^[1-9]\d{0,3}$/.test(number))
    return `${shown}: the number after # must be a whole number, counted from 1`
  if (entry.kind !== undefined && type !== 'file' && entry.kind !== type)
    return `${shown} is ${MEDIA_NOUNS[entry.kind]}, not ${MEDIA_NOUNS[type]}`
  return { ...reference, source, output: Number(number) }
}

/** Returns the names of the entries that an entry uses, without duplicates. */
export const sourcesOf = ({ references }: ManifestEntry): readonly string[] => [
  ...new Set(references.flatMap((each) => (each.from === 'row' ? [each.source] : []))),
]

/** Reports a cycle: one of the rows that no order contains. */
function reportCycle(entries: readonly ManifestEntry[], rows: readonly ManifestRow[]): void {
  const nodes = entries.map((entry, at) => ({ name: entry.name, sources: sourcesOf(entry), row: rows[at] }))
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
  left
    .get(cycle.at(-1) ?? '')
    ?.row?.report(`these runs use each other in a cycle: ${shortened([...cycle, name].join(' → '))}`)
}

export interface RowNode {
  readonly name: string
  /** Names of the rows that it uses. Names of rows outside the list are ignored. */
  readonly sources: readonly string[]
}

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

/** Returns the names of these rows and of all rows that they need. */
export function withSources(rows: readonly RowNode[], names: Iterable<string>): ReadonlySet<string> {
  const byName = new Map(rows.map((row) => [row.name, row]))
  const found = new Set(names)
  for (const name of found) for (const source of byName.get(name)?.sources ?? []) found.add(source)
  return found
}
