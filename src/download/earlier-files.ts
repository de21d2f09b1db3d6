/** A file that an earlier command downloaded and that is still unchanged need not be downloaded again. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import type { DownloadedFile } from './downloaded-file.js'
import { withExtension } from './file-names.js'

/**
 * The earlier file with this name, which may contain `{ext}`, if its bytes are still the same. `earlier` has absolute
 * paths; the result has its path as `name` is written.
 */
export async function findUnchanged(
  name: string,
  earlier: readonly DownloadedFile[],
  signal: AbortSignal | undefined,
): Promise<DownloadedFile | undefined> {
  for (const file of earlier) {
    const path = withExtension(name, extname(file.path).slice(1))
    if (resolve(path) === file.path && (await isUnchanged(file, signal))) return { ...file, path }
  }
  return undefined
}

async function isUnchanged(
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
