/** Makes the files that a server sent the outputs of a run, with names and types by their bytes. */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTypeFromFile } from 'file-type'
import { replaceFile } from '../../../host/files.js'
import { fromBase64, MEDIA_NOUNS } from '../../../protocol/media.js'
import type { Kind } from '../../../protocol/models.js'
import type { RenderedFile, RenderJob, UpstreamJob } from '../engine.js'
import { JobEnded, UpstreamError } from './upstream-error.js'

export const MAX_FILE_BYTES = 512 * 1_048_576
const MAX_FILES = 64

/** Saves a result as a hidden file, and resolves with its path. Removes the file if it is incomplete. */
export async function saveFile(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  folder: string,
  maxBytes: number,
  declaredBytes = 0,
): Promise<string> {
  const path = join(folder, `.${randomUUID()}`)
  let bytes = 0
  const tooLarge = () =>
    new JobEnded(`The model's server sent a result of more than ${MAX_FILE_BYTES / 1_048_576} MiB.`)
  async function* bounded(): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw tooLarge()
      yield chunk
    }
  }
  if (declaredBytes > maxBytes) throw tooLarge()
  try {
    // Repeats writes that a full disk cuts short.
    await writeFile(path, bounded(), { flag: 'wx', mode: 0o600 })
    if (bytes === 0) throw new JobEnded("The model's server sent an empty result.")
    return path
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

const DATA_PREFIX = /^data:[^,]{0,200};base64,/i

/** Saves a result that is base64 in an answer, with or without `data:…;base64,`. Resolves with the path of a hidden file. */
export async function saveBase64(text: unknown, { folder }: UpstreamJob): Promise<string> {
  if (typeof text !== 'string') throw new JobEnded("The model's server sent no result.")
  const bytes = fromBase64(text.replace(DATA_PREFIX, ''))
  if (bytes === undefined) throw new JobEnded("The model's server sent a result that is not valid base64.")
  return await saveFile([bytes], folder, MAX_FILE_BYTES)
}

/** Fetches files one after the other, with at most `MAX_FILE_BYTES` together. Resolves with their paths; else removes them. */
export async function fetchFiles<Source>(
  sources: readonly Source[],
  fetch: (source: Source, maxBytes: number) => Promise<string>,
): Promise<readonly string[]> {
  if (sources.length > MAX_FILES)
    throw new JobEnded(`The result has ${sources.length} files; a run may have at most ${MAX_FILES}.`)
  const paths: string[] = []
  let leftBytes = MAX_FILE_BYTES
  try {
    for (const source of sources) {
      const path = await fetch(source, leftBytes)
      paths.push(path)
      leftBytes -= (await stat(path)).size
    }
    return paths
  } catch (error) {
    await removeFiles(paths)
    throw error
  }
}

const removeFiles = (paths: readonly string[]): Promise<unknown> =>
  Promise.all(paths.map((path) => rm(path, { force: true })))

/**
 * Renames hidden files in the job's folder to `image.png`, or `image-1.png`, `image-2.png` …, in this order. Throws
 * `JobEnded` for a file of another type. `accepted`: types that the files may have. Default: that of the model.
 */
export async function publishOutputs(
  { folder, kind }: RenderJob,
  paths: readonly string[],
  accepted: readonly string[] = [kind],
): Promise<readonly RenderedFile[]> {
  if (paths.length === 0) throw new JobEnded("The model's server sent no result.")
  // Check all types before the first file gets its name.
  const types = await Promise.all(paths.map((path) => typeOf(path, kind, accepted))).catch(async (error) => {
    await removeFiles(paths)
    throw error
  })
  const outputs: RenderedFile[] = []
  for (const [index, { ext, mime }] of types.entries()) {
    const name = `${kind}${paths.length === 1 ? '' : `-${index + 1}`}.${ext}`
    await replaceFile(paths[index] ?? '', join(folder, name))
    outputs.push({ name, contentType: mime })
  }
  return outputs
}

async function typeOf(
  path: string,
  kind: Kind,
  accepted: readonly string[],
): Promise<{ readonly ext: string; readonly mime: string }> {
  const type = await fileTypeFromFile(path)
  const isAccepted = (mime: string) => accepted.some((each) => mime.startsWith(`${each}/`))
  if (type !== undefined && isAccepted(type.mime) && !/svg/.test(type.mime)) return type
  const isPage = type === undefined && (await beginsAsHtml(path))
  const found = isPage ? 'text/html' : (type?.mime ?? 'an unknown type')
  const message = `The model's server sent ${found}, which is not ${MEDIA_NOUNS[kind]}.`
  // The page of a proxy is not the result.
  throw isPage ? new UpstreamError(message, { status: 200 }) : new JobEnded(message)
}

async function beginsAsHtml(path: string): Promise<boolean> {
  for await (const start of createReadStream(path, { end: 511, encoding: 'latin1' }))
    return /^\s*<(!doctype|html)/i.test(start)
  return false
}
