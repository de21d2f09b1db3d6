/** A file that an earlier command brought home: asked for again, it is done already. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import type { DownloadedFile } from './deliver-output.js'
import { awaitsExtension, withExtension } from './file-names.js'

/** Files by where they are, so that two hundred names are not each looked for among as many files. */
export interface Having {
  /** By absolute path; several commands may have brought home the same. */
  readonly byPath: ReadonlyMap<string, readonly DownloadedFile[]>
  /** Without their points, in the order in which they were met. */
  readonly extensions: ReadonlySet<string>
}

/** `files` have absolute paths. */
export function havingOf(files: readonly DownloadedFile[]): Having {
  const byPath = new Map<string, DownloadedFile[]>()
  for (const file of files) {
    const same = byPath.get(file.path)
    if (same === undefined) byPath.set(file.path, [file])
    else same.push(file)
  }
  return { byPath, extensions: new Set(files.map(({ path }) => extname(path).slice(1))) }
}

/**
 * The file under this name (`{ext}` may stand in it), if it is one of those and still what it was then, by its bytes. The
 * path of the answer is as the name is written.
 */
export async function stillThere(
  name: string,
  { byPath, extensions }: Having,
  signal: AbortSignal | undefined,
): Promise<DownloadedFile | undefined> {
  const names = awaitsExtension(name) ? [...extensions].map((each) => withExtension(name, each)) : [name]
  for (const path of names)
    for (const file of byPath.get(resolve(path)) ?? [])
      if (await isSame(file, signal)) return { ...file, path }
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
