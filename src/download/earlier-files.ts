/** A file that an earlier command downloaded and that is still unchanged need not be downloaded again. */
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { sha256OfFile } from '../host/file-content.js'
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
    return size === bytes && (await sha256OfFile(path, signal)) === sha256
  } catch {
    signal?.throwIfAborted()
    return false
  }
}
