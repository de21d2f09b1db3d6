/**
 * Reads the sources of media parameters, of flags, of `--input`, of tools and of manifests: a local file is checked by its
 * bytes and sent as a data: URL. `run:<id>` and `row:<name>` are found later, in run-outputs.ts.
 */
import { createHash } from 'node:crypto'
import { tooLarge } from '../../client/create.js'
import { RushesError, usageError } from '../../errors.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import {
  dataUrl,
  MediaSummary,
  type MediaType,
  mediaContentType,
  mediaProblem,
  sourceFormOf,
} from '../../protocol/media.js'
import {
  type MediaParameters,
  type MediaSource,
  mediaSources,
  withMedia,
} from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { linesOf, readPath, readStdin } from '../process/io.js'

interface MediaFile {
  readonly bytes: Buffer
  readonly contentType: string
}

const SOURCES = 'Give a path, an http(s) URL, a data: URL or run:<id> for an output of an earlier run.'

interface ReadMediaOptions {
  readonly type: MediaType
  readonly signal: AbortSignal
  /** The path in messages. Default: the path. */
  readonly shown?: string
}

/** `isRegular`: only a regular file is read. Throws `usage`: a message that begins with the path. */
async function readMediaFile(
  path: string,
  { type, signal, shown = path }: ReadMediaOptions,
  isRegular = false,
): Promise<MediaFile> {
  const bytes = await readPath(path, {
    signal,
    shown,
    hint: SOURCES,
    check(found) {
      if (isRegular && !found.isFile()) throw usageError(`${shown} is not a regular file.`)
      if (found.size > MAX_BODY_BYTES) throw tooLarge(`${shown} has ${found.size} bytes`)
    },
  })
  return checkedFile(bytes, shown, type)
}

function checkedFile(bytes: Buffer, shown: string, type: MediaType): MediaFile {
  const contentType = mediaContentType(bytes, type)
  if (contentType !== undefined) return { bytes, contentType }
  throw usageError(`${shown} ${mediaProblem(bytes, type)}.`, 'The content of the file decides, not its name.')
}

/**
 * Returns what identifies a regular file, or why it cannot be sent: a text that begins with the path. Reading a pipe or
 * device may never end.
 */
export async function identifyMediaFile(
  path: string,
  options: ReadMediaOptions,
): Promise<MediaSummary | string> {
  try {
    const { bytes, contentType } = await readMediaFile(path, options, true)
    return new MediaSummary(sha256Of(bytes), bytes.byteLength, contentType)
  } catch (error) {
    if (error instanceof RushesError && error.code === 'usage') return error.message.replace(/\.$/, '')
    throw error
  }
}

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Returns the path of a local file. Throws for one that must not be read. */
export type FileOf = (path: string, parameter: string) => string

interface SourcesOptions {
  readonly fileOf?: FileOf | undefined
  readonly media: MediaParameters
  readonly signal: AbortSignal
}

/** Returns the input with the bytes of each local file in the parameters `names`. Rejects with `usage`. */
export async function readMediaSources(
  input: ModelInput,
  names: readonly string[],
  { media, signal, fileOf = (path) => path }: SourcesOptions,
): Promise<ModelInput> {
  const changes: MediaSource[] = []
  for (const source of mediaSources(input, names)) {
    const { parameter, value } = source
    if (typeof value !== 'string') continue
    const form = sourceFormOf(value)
    // `run:` is resolved later, when the service is known.
    if (form === 'url' || form === 'data' || form === 'run') continue
    if (form === 'invalid url')
      throw usageError(`${parameter}: "${shortened(value, 100)}" is not a valid URL.`)
    if (form === 'blank' || form === 'standard input')
      throw usageError(`${parameter} has an empty entry.`, SOURCES)
    const type = media.get(parameter) ?? 'file'
    const path = fileOf(value, parameter)
    const file = await naming(parameter, () => readMediaFile(path, { type, signal, shown: value }))
    changes.push({ ...source, value: dataUrl(file.bytes, file.contentType) })
  }
  return withMedia(input, changes)
}

/** Adds the name of the parameter to an error. */
async function naming<Result>(parameter: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof RushesError) || error.code !== 'usage') throw error
    throw usageError(`${parameter}: ${error.message}`, error.hint)
  }
}

/** Returns the input with the content of standard input, one file or one source per line, in the place of `-`. */
export async function withStdin(
  input: ModelInput,
  { parameter, entry }: MediaSource,
  media: MediaParameters,
  { stdin, interrupts }: Context,
): Promise<ModelInput> {
  const type = media.get(parameter) ?? 'file'
  const bytes = await readStdin(stdin, `the sources of ${parameter}`, interrupts.first)
  const isText = mediaContentType(bytes, type === 'file' ? 'image' : type) === undefined && !bytes.includes(0)
  const file = isText
    ? undefined
    : await naming(parameter, async () => checkedFile(bytes, 'Standard input', type))
  const sources = file ? [dataUrl(file.bytes, file.contentType)] : linesOf(bytes.toString('utf8'))
  const { [parameter]: list } = input
  if (entry !== undefined && Array.isArray(list))
    return { ...input, [parameter]: list.toSpliced(entry, 1, ...sources) }
  const [only = ''] = sources
  if (sources.length === 1) return { ...input, [parameter]: only }
  throw usageError(`${parameter} takes one source, and standard input has ${sources.length}.`)
}
