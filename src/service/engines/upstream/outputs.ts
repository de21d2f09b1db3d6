/** Makes the files that a server sent the outputs of a run, with names and types by their bytes. */
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTypeFromFile } from 'file-type'
import { replaceFile } from '../../../host/files.js'
import type { Kind } from '../../../protocol/models.js'
import type { RenderedFile, RenderJob } from '../engine.js'
import { MAX_FILE_BYTES, MAX_FILES } from './json-answer.js'
import { JobEnded, UpstreamError } from './upstream-error.js'

/** Fetches files one after the other, with at most `MAX_FILE_BYTES` together. Resolves with their paths. */
export async function fetchFiles<Source>(
  sources: readonly Source[],
  fetch: (source: Source, maxBytes: number) => Promise<string>,
): Promise<readonly string[]> {
  if (sources.length > MAX_FILES)
    throw new JobEnded(`The result has ${sources.length} files; a run may have at most ${MAX_FILES}.`)
  const paths: string[] = []
  let leftBytes = MAX_FILE_BYTES
  for (const source of sources) {
    const path = await fetch(source, leftBytes)
    leftBytes -= (await stat(path)).size
    paths.push(path)
  }
  return paths
}

/**
 * Renames hidden files in the job's folder to `image.png`, or `image-1.png`, `image-2.png` …, in this order. Throws
 * `JobEnded` unless each is an image, or for a video model a video. `more`: other accepted kinds, such as `audio`.
 */
export async function publishOutputs(
  { folder, kind }: RenderJob,
  paths: readonly string[],
  more: readonly string[] = [],
): Promise<readonly RenderedFile[]> {
  if (paths.length === 0) throw new JobEnded("The model's server sent no result.")
  // Check all types before the first file gets its name.
  const types = await Promise.all(paths.map((path) => typeOf(path, [kind, ...more])))
  const outputs: RenderedFile[] = []
  for (const [index, path] of paths.entries()) {
    const { ext, mime } = types[index] ?? { ext: 'bin', mime: 'application/octet-stream' }
    const name = `${kind}${paths.length === 1 ? '' : `-${index + 1}`}.${ext}`
    await replaceFile(path, join(folder, name))
    outputs.push({ name, contentType: mime })
  }
  return outputs
}

async function typeOf(
  path: string,
  accepted: readonly string[],
): Promise<{ readonly ext: string; readonly mime: string }> {
  const type = await fileTypeFromFile(path)
  const found = type?.mime ?? ((await beginsAsHtml(path)) ? 'text/html' : 'an unknown type')
  if (
    type !== undefined &&
    accepted.some((each) => type.mime.startsWith(`${each}/`)) &&
    !/svg/.test(type.mime)
  )
    return type
  const message = `The model's server sent ${found}, which is not ${article(accepted[0] as Kind)}.`
  // The page of a proxy is not the result.
  throw found === 'text/html' ? new UpstreamError(message, { status: 200 }) : new JobEnded(message)
}

const article = (kind: Kind): string => (kind === 'image' ? 'an image' : 'a video')

async function beginsAsHtml(path: string): Promise<boolean> {
  const handle = await open(path)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(512), 0, 512, 0)
    return /^\s*<(!doctype|html)/i.test(buffer.toString('latin1', 0, bytesRead))
  } finally {
    await handle.close()
  }
}
