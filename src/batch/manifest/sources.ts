/**
 * Reads the sources in the media parameters of the runs. Local files are checked by their bytes, and identified by their
 * hash. `row:hero` and `row:hero#2` are outputs of other runs.
 */
import { resolve } from 'node:path'
import { followLinks } from '../../host/file-system.js'
import { writeJson } from '../../protocol/json.js'
import { MEDIA_NOUNS, type MediaSummary, type MediaType, sourceFormOf } from '../../protocol/media.js'
import { type MediaPlace, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { nearest, shortened } from '../../protocol/text.js'
import type { ManifestEntry, MediaReference, RowReference, SentReference } from './entry.js'
import { type FileClaim, FileIndex, type ManifestFolder } from './outputs.js'
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

/** An output that rows can use. */
export interface OutputClaim extends FileClaim {
  readonly kind: Kind
  /** Name of the run that has the output. */
  readonly name: string
  /** Number of the output: 2 or more. Undefined for the first one. */
  readonly number?: number
}

interface MediaReaderOptions {
  readonly folder: ManifestFolder
  readonly rules: MediaRules
  /** The first outputs of all runs, and the others that the lock file knows. */
  readonly outputs: readonly OutputClaim[]
  readonly further: readonly OutputClaim[]
  /** Whether runs are missing because of their own problems. An unknown name may be one of theirs. */
  readonly isIncomplete: boolean
}

/** Reads the sources of the runs, and each local file once. */
export class MediaReader {
  readonly #options: MediaReaderOptions
  readonly #images: FileIndex<OutputClaim>
  /** The kind of each run. */
  readonly #kinds: ReadonlyMap<string, Kind>
  readonly #local = new Map<string, Promise<OutputClaim | MediaSummary | string>>()

  constructor(options: MediaReaderOptions) {
    const { outputs, further } = options
    this.#options = options
    this.#images = new FileIndex([...outputs, ...further].filter(({ kind }) => kind !== 'video'))
    this.#kinds = new Map(outputs.map(({ name, kind }) => [name, kind]))
  }

  /** `names`: of the runs that the row makes. */
  async referencesOf(row: ManifestRow, names: readonly string[]): Promise<readonly MediaReference[]> {
    const references: MediaReference[] = []
    for (const { value, ...place } of mediaSources(row.input, row.media.keys())) {
      if (typeof value !== 'string') continue
      const found = await this.#referenceOf(value, place, row.media.get(place.parameter) ?? 'file', names)
      if (typeof found === 'string') row.report(`${place.parameter}: ${found}`, ...pathOf(place))
      else if (found !== undefined) references.push(found)
    }
    const bytes = bytesToSend(row.input, references)
    const { maxBodyBytes } = this.#options.rules
    if (bytes > maxBodyBytes)
      row.report(
        `the files need a request of ${bytes} bytes, and a request may have at most ${maxBodyBytes / 1024 / 1024} MiB`,
        references.find(({ from }) => from === 'file')?.place.parameter ?? 'prompt',
      )
    return references
  }

  /** Returns the reference, or why it cannot be used. Undefined if the problem of another run hides that. */
  async #referenceOf(
    text: string,
    place: MediaPlace,
    type: MediaType,
    names: readonly string[],
  ): Promise<MediaReference | string | undefined> {
    const { folder, rules } = this.#options
    switch (sourceFormOf(text)) {
      case 'blank':
        return 'a source is blank'
      case 'invalid url':
        return `"${shortened(text, 100)}" is not a valid URL`
      case 'standard input':
        return 'a manifest cannot read a file from standard input'
      case 'data':
        return { from: 'url', place, text, summary: rules.summaryOf(text) }
      case 'url':
      case 'run':
        return { from: 'url', place, text }
      case 'row':
        return this.#rowReference(text, place, type)
      default: {
        const found = await this.#localSource(text, place, type)
        if (typeof found === 'string') return found
        if ('realPath' in found) return useOfOutput(text, found, names)
        return { from: 'file', place, text, path: resolve(folder.path, text), summary: found }
      }
    }
  }

  /** The output that a local path is, or will be; the summary of another file, or why that cannot be sent. */
  #localSource(text: string, { parameter }: MediaPlace, type: MediaType) {
    const key = `${type} ${text}`
    const found = this.#local.get(key) ?? this.#findLocal(text, parameter, type)
    this.#local.set(key, found)
    return found
  }

  async #findLocal(text: string, parameter: string, type: MediaType) {
    const { folder, rules } = this.#options
    const path = resolve(folder.path, text)
    const claimOn = (realPath: string) => this.#images.find({ realPath })
    // A link is compared by the file that it points to.
    const claim = claimOn(folder.realPathOf(path)) ?? claimOn(followLinks(path).replaceAll('\\', '/'))
    if (claim !== undefined) return claim
    rules.onMedia?.(path, parameter)
    return rules.readMedia(path, text, type)
  }

  #rowReference(text: string, place: MediaPlace, type: MediaType): RowReference | string | undefined {
    const { isIncomplete } = this.#options
    const kinds = this.#kinds
    const written = text.replace(/^row:/i, '').normalize()
    // The name itself may contain "#".
    const at = kinds.has(written) ? -1 : written.lastIndexOf('#')
    const source = at === -1 ? written : written.slice(0, at)
    const number = at === -1 ? '1' : written.slice(at + 1)
    const shown = `"${shortened(text, 100)}"`
    if (source.trim() === '') return `${shown} needs the name of a run: row:hero`
    if (!kinds.has(source)) {
      if (isIncomplete) return undefined
      const near = nearest(source, [...kinds.keys()])
      const hint = near === undefined ? '' : `. Did you mean "row:${near}"?`
      return `${shown}: the manifest has no run named "${shortened(source, 100)}"${hint}`
    }
    if (!/^[1-9]\d{0,3}$/.test(number))
      return `${shown}: the number after # must be a whole number, counted from 1`
    const kind = kinds.get(source)
    if (kind !== undefined && type !== 'file' && kind !== type)
      return `${shown} is ${MEDIA_NOUNS[kind]}, not ${MEDIA_NOUNS[type]}`
    return { from: 'row', place, type, text, source, output: Number(number) }
  }
}

/**
 * Why an output cannot be used by its path: it would change while the batch runs, and the run would be created and paid
 * for again.
 */
function useOfOutput(text: string, { name, number }: OutputClaim, names: readonly string[]): string {
  const output = `"${text}" is ${number === undefined ? 'the' : 'an'} output of`
  if (names.includes(name)) return `${output} this run itself: give the run another output`
  return `${output} another run: write row:${name}${number === undefined ? '' : `#${number}`}`
}

/** Where a source of the run is written. */
const pathOf = ({ parameter, entry }: MediaPlace): Path =>
  entry === undefined ? [parameter] : [parameter, entry]

/** Returns the approximate size of the request body in bytes. Base64 turns 3 bytes into 4. */
const bytesToSend = (input: ModelInput, references: readonly MediaReference[]): number =>
  references.reduce(
    (sum, each) => sum + (each.from === 'file' ? 4 * Math.ceil(each.summary.bytes / 3) + 30 : 0),
    Buffer.byteLength(writeJson(input)),
  )

/** Returns the input with what identifies each source in its place: its summary, or its text. */
export const withSummaries = (input: ModelInput, references: readonly MediaReference[]): ModelInput =>
  withMedia(
    input,
    references.map((each) => ({
      ...each.place,
      value: (each.from === 'row' ? undefined : each.summary) ?? each.text,
    })),
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
