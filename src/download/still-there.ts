/** A file that an earlier command brought home: asked for again, it is done already. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import type { DownloadedFile } from './deliver.js'
import { awaitsExtension, withExtension } from './names.js'

/**
 * The file under this name (`{ext}` may stand in it), if it is one of `files` and still what it was then, by its bytes.
 * `files` have absolute paths; the path of the answer is as the name is written.
 */
export async function stillThere(
  name: string,
  files: readonly DownloadedFile[],
  signal: AbortSignal | undefined,
): Promise<DownloadedFile | undefined> {
  for (const file of files) {
    const path = awaitsExtension(name) ? withExtension(name, extname(file.path).slice(1)) : name
    if (resolve(path) === file.path && (await isSame(file, signal))) return { ...file, path }
  }
  return undefined
}

async function isSame(
  { path, bytes, sha256 }: DownloadedFile,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    const { size } = await stat(path)
    if (size !== bytes) return false
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Uint8Array)
    return hash.digest('hex') === sha256
  } catch {
    signal?.throwIfAborted()
    return false
  }
}
