/**
 * Reads the reference images of the rows. Local files are checked by their first bytes and identified by their hash.
 */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { usageError } from '../../errors.js'
import { describeError } from '../../host/system-error.js'
import { writeJson } from '../../protocol/json.js'
import { dataUrl, imageProblem, imageSourceOf, MediaSummary } from '../../protocol/media.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Path } from './format.js'
import {
  type ImageReference,
  type ManifestEntry,
  type RowReference,
  unresolvedRow,
} from './manifest-entry.js'
import type { ManifestRow } from './row.js'

export interface ImageRules {
  /** Returns the content type for the first bytes of a file. Undefined for files that are not images. */
  imageTypeOf(bytes: Uint8Array): string | undefined
  readonly maxBodyBytes: number
  /** Called with the absolute path of each local image, before it is read. */
  onImage?(path: string): void
}

/**
 * Finds the reference images of a row. `problemOf` returns why the file at an absolute path cannot be used, if that is
 * known without reading the file.
 */
export type ReferencesOf = (row: ManifestRow, problemOf: ProblemOfPath) => Promise<readonly ImageReference[]>

type ProblemOfPath = (path: string, shown: string) => string | undefined

/** Returns a function that reads each file once, even if several rows use it. */
export function imageReaderIn(folder: string, rules: ImageRules): ReferencesOf {
  const seen = new Map<string, Promise<MediaSummary | string>>()
  const readOnce = (path: string): Promise<MediaSummary | string> => {
    const known = seen.get(path)
    if (known !== undefined) return known
    rules.onImage?.(path)
    const read = readImage(path, rules)
    seen.set(path, read)
    return read
  }
  return async (row, problemOf) => {
    const sources = row.input.image_urls
    // A whole input may have anything in this place.
    if (row.hasOwnInput && !(Array.isArray(sources) && sources.every((each) => typeof each === 'string')))
      return []
    const references: ImageReference[] = []
    for (const [at, source] of (Array.isArray(sources) ? sources : []).entries()) {
      if (typeof source !== 'string') continue
      const found = await readOne(source, problemOf)
      if (typeof found === 'string') row.report(found, ...placeOfImage(row, at))
      else references.push(found)
    }
    return references
  }

  /** Returns the reference, or a message why it cannot be used. */
  async function readOne(source: string, problemOf: ProblemOfPath): Promise<ImageReference | string> {
    const form = imageSourceOf(source)
    if (form === 'blank') return 'image_urls contains a blank entry'
    if (form === 'invalid url') return `"${shortened(source, 100)}" is not a valid image URL`
    if (form === 'standard input') return 'a manifest cannot read an image from standard input'
    if (form === 'url' || form === 'data') return { from: 'url', text: source }
    if (form === 'run') return { from: 'run', text: source }
    if (form === 'row') return unresolvedRow(source)
    const path = resolve(folder, source)
    const problem = problemOf(path, source)
    if (problem !== undefined) return problem
    const found = await readOnce(path)
    return typeof found === 'string' ? `${source}${found}` : { from: 'file', path, summary: found }
  }
}

/** Where an image of the run is written. */
export const placeOfImage = ({ hasOwnInput }: ManifestRow, item: number): Path =>
  hasOwnInput ? ['input', 'image_urls', item] : ['image_urls', item]

/** Returns the summary of the image, or the problem as text to follow the file name. */
async function readImage(
  path: string,
  { imageTypeOf, maxBodyBytes }: ImageRules,
): Promise<MediaSummary | string> {
  try {
    const found = await stat(path)
    // Reading a pipe or device may never end.
    if (!found.isFile()) return ' is not a regular file'
    if (found.size > maxBodyBytes) return tooLargeMessage(` has ${found.size} bytes`, maxBodyBytes)
    const bytes = await readFile(path)
    const type = imageTypeOf(bytes)
    return type === undefined ? ` ${imageProblem(bytes)}` : summaryOf(bytes, type)
  } catch (error) {
    return describeError(error, '')
  }
}

const summaryOf = (bytes: Uint8Array, type: string): MediaSummary =>
  new MediaSummary(createHash('sha256').update(bytes).digest('hex'), bytes.byteLength, type)

export const tooLargeMessage = (what: string, mostBytes: number): string =>
  `${what}, and a request may have at most ${mostBytes / 1024 / 1024} MiB`

/**
 * Returns the content that identifies an image: the summary of a local file, or the text of the reference. Not for
 * outputs of rows.
 */
export const contentOf = (reference: ImageReference): MediaSummary | string =>
  reference.from === 'file' ? reference.summary : reference.text

/** Returns the input with each local image replaced by its summary. */
export const withSummaries = (input: ModelInput, references: readonly ImageReference[]): ModelInput =>
  references.some(({ from }) => from === 'file') ? { ...input, image_urls: references.map(contentOf) } : input

/** Returns the approximate size of the request body in bytes. Base64 turns 3 bytes into 4. */
export const bytesToSend = (input: ModelInput, references: readonly ImageReference[]): number =>
  references.reduce(
    (sum, each) => sum + (each.from === 'file' ? 4 * Math.ceil(each.summary.bytes / 3) + 30 : 0),
    Buffer.byteLength(writeJson(input)),
  )

/**
 * Returns the input to send for an entry. Reads local images only now, since all images of a manifest may not fit into
 * memory. `urlOf` returns the URL of another row's output. Throws `usage` if an image has changed since the plan was
 * made.
 */
export async function inputToSend(
  { name, input, references }: ManifestEntry,
  urlOf: (reference: RowReference) => Promise<string>,
): Promise<ModelInput> {
  if (!references.some(({ from }) => from === 'file' || from === 'row')) return input
  const urls: string[] = []
  for (const each of references) {
    if (each.from === 'row') urls.push(await urlOf(each))
    else urls.push(each.from === 'file' ? await sentImage(name, each) : each.text)
  }
  return { ...input, image_urls: urls }
}

async function sentImage(
  name: string,
  { path, summary }: ImageReference & { from: 'file' },
): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw usageError(`Cannot read the image of ${name} again: ${describeError(error, path)}.`)
  })
  if (summaryOf(bytes, summary.content_type).sha256 !== summary.sha256)
    throw usageError(
      `The image ${path} of ${name} changed while the batch was running.`,
      'Run the same command again.',
    )
  return dataUrl(bytes, summary.content_type)
}
