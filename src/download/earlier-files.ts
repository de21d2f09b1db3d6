/** A file that an earlier command downloaded and that is still unchanged need not be downloaded again. */
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { sha256OfFile } from '../host/file-content.js'
import type { DownloadedFile } from './downloaded-file.js'
import { withExtension } from './file-names.js'

/** By their path, so that the names of two hundred outputs are not each compared with as many files. */
export interface EarlierFiles {
  /** By absolute path: several commands may have downloaded the same one. */
  readonly byPath: ReadonlyMap<string, readonly DownloadedFile[]>
  /** Without their dots. */
  readonly extensions: ReadonlySet<string>
}

/** `files` have absolute paths. */
export function earlierFilesOf(files: readonly DownloadedFile[]): EarlierFiles {
  const byPath = new Map<string, DownloadedFile[]>()
  for (const file of files) {
    const same = byPath.get(file.path)
    if (same === undefined) byPath.set(file.path, [file])
    else same.push(file)
  }
  return { byPath, extensions: new Set(files.map(({ path }) => extname(path).slice(1))) }
}

/**
 * The earlier file with this name, which may contain `{ext}`, if its bytes are still the same. The result has its path as
 * `name` is written.
 */
export async function findUnchanged(
  name: string,
  { byPath, extensions }: EarlierFiles,
  signal: AbortSignal | undefined,
): Promise<DownloadedFile | undefined> {
  for (const path of new Set([...extensions].map((extension) => withExtension(name, extension))))
    for (const file of byPath.get(resolve(path)) ?? [])
      if (await isUnchanged(file, signal)) return { ...file, path }
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
