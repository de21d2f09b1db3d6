/** Finds the sources in the media parameters of the rows. Local files are checked by their bytes, and identified by their hash. */
import { resolve } from 'node:path'
import { writeJson } from '../../protocol/json.js'
import { type MediaSummary, type MediaType, sourceFormOf } from '../../protocol/media.js'
import { IMAGE_URLS, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Path } from './format.js'
import { type ManifestEntry, type MediaReference, unresolvedRow } from './manifest-entry.js'
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

/**
 * Finds the references of a row. `problemOf` returns why the file at an absolute path cannot be used, if that is known
 * without reading the file.
 */
export type ReferencesOf = (row: ManifestRow, problemOf: ProblemOfPath) => Promise<readonly MediaReference[]>

type ProblemOfPath = (path: string, shown: string) => string | undefined
type Content = MediaReference extends infer Each
  ? Each extends unknown
    ? Omit<Each, 'place'>
    : never
  : never

/** The parameter of a source, and what it takes. */
interface Taken {
  readonly parameter: string
  readonly type: MediaType
}

/** Returns a function that reads each file once, even if several rows use it. */
export function referenceReaderIn(folder: string, rules: MediaRules): ReferencesOf {
  const seen = new Map<string, Promise<MediaSummary | string>>()
  function readOnce(path: string, shown: string, { parameter, type }: Taken): Promise<MediaSummary | string> {
    const key = `${type} ${shown}`
    const known = seen.get(key)
    if (known !== undefined) return known
    rules.onMedia?.(path, parameter)
    const read = rules.readMedia(path, shown, type)
    seen.set(key, read)
    return read
  }
  return async (row, problemOf) => {
    const references: MediaReference[] = []
    for (const { value, ...place } of mediaSources(row.input, row.media.keys())) {
      // Without a document, a whole input may have anything in this place.
      if (typeof value !== 'string') continue
      const taken = { parameter: place.parameter, type: row.media.get(place.parameter) ?? 'file' }
      const found = await readOne(value, taken, problemOf)
      if (typeof found === 'string') row.report(`${place.parameter}: ${found}`, ...pathOf(row, place))
      else references.push({ ...found, place })
    }
    return references
  }

  /** Returns the reference, or a message why it cannot be used. */
  async function readOne(source: string, taken: Taken, problemOf: ProblemOfPath): Promise<Content | string> {
    const form = sourceFormOf(source)
    if (form === 'blank') return 'a source is blank'
    if (form === 'invalid url') return `"${shortened(source, 100)}" is not a valid URL`
    if (form === 'standard input') return 'a manifest cannot read a file from standard input'
    if (form === 'data') {
      // Lock files of earlier versions have the text of all others: the row is not paid again for it.
      const summary = taken.parameter === IMAGE_URLS ? rules.summaryOf(source) : undefined
      return { from: 'url', text: source, summary }
    }
    if (form === 'url' || form === 'run') return { from: form, text: source }
    if (form === 'row') return { ...unresolvedRow(source), type: taken.type }
    const path = resolve(folder, source)
    const found = problemOf(path, source) ?? (await readOnce(path, source, taken))
    return typeof found === 'string' ? found : { from: 'file', path, summary: found }
  }
}

/** Where a source of the run is written. */
export const pathOf = ({ hasOwnInput }: ManifestRow, { parameter, entry }: MediaReference['place']): Path => [
  ...(hasOwnInput ? ['input'] : []),
  parameter,
  ...(entry === undefined ? [] : [entry]),
]

export const tooLargeMessage = (what: string, mostBytes: number): string =>
  `${what}, and a request may have at most ${mostBytes / 1024 / 1024} MiB`

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

/** Returns the approximate size of the request body in bytes. Base64 turns 3 bytes into 4. */
export const bytesToSend = (input: ModelInput, references: readonly MediaReference[]): number =>
  references.reduce(
    (sum, each) => sum + (each.from === 'file' ? 4 * Math.ceil(each.summary.bytes / 3) + 30 : 0),
    Buffer.byteLength(writeJson(input)),
  )

/** A source whose URL is known only when the run is created. */
export type SentReference = Extract<MediaReference, { readonly from: 'file' | 'row' }>

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
