/** The last step: a complete file gets its final name. */

import { lstatSync, type Stats, statSync } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { moveWithoutReplacing, sha256OfFile } from '../host/files.js'
import { printable } from '../protocol/text.js'
import { describeFileError, downloadFailed, withWriteErrors } from './failures.js'
import { withExtension } from './file-names.js'

export interface Obstacle {
  /** `fox.mp4 exists` */
  readonly message: string
  readonly hint: string | undefined
}

/**
 * What prevents a file at `path`, or undefined. An early check: `moveIntoPlace` is safe without it.
 *
 * `overwrite` replaces only files and links: as root, `-o /dev/null` would otherwise replace the device. A link
 * itself is replaced, not its target (curl writes through it), so that the file is complete from the first instant
 * and nothing is written outside the named folder.
 */
export function obstacleAt(path: string, overwrite: boolean): Obstacle | undefined {
  const named = printable(path)
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return undefined
    if (found.isDirectory()) return { message: `${named} is a folder`, hint: `To save into it: -o ${named}/` }
    if (!overwrite) return { message: `${named} already exists`, hint: 'Use --overwrite to replace it.' }
    const target = found.isSymbolicLink() ? targetOf(path) : found
    if (target !== undefined && !target.isFile())
      return {
        message: `${named} is not a regular file and is not replaced`,
        hint: 'To write to standard output: -o -',
      }
    return undefined
  } catch (error) {
    return { message: `${named}: ${describeFileError(error)}`, hint: undefined }
  }
}

/** The target of a link, if it exists. */
function targetOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

/** Throws `download_failed` for an obstacle. */
export function refuseObstacle(path: string, overwrite: boolean): void {
  const obstacle = obstacleAt(path, overwrite)
  if (obstacle !== undefined) throw downloadFailed(obstacle.message, { hint: obstacle.hint })
}

/** Renames the part. Without `overwrite` it never replaces a file, even in a race with another process. */
export async function moveIntoPlace(part: string, path: string, overwrite: boolean): Promise<void> {
  // The early check was before the download. Without `overwrite` the move itself checks.
  if (overwrite) refuseObstacle(path, overwrite)
  try {
    await withWriteErrors(path, () => (overwrite ? rename : moveWithoutReplacing)(part, path))
  } catch (error) {
    refuseObstacle(path, overwrite)
    throw error
  }
}

/** Downloaded files. One of an earlier command that is still unchanged is not downloaded again. */

/** One entry of `files` in the JSON output. */
export interface DownloadedFile {
  /** As the user wrote it: relative stays relative. `-` for standard output. */
  readonly path: string
  readonly bytes: number
  /** 64 hexadecimal digits. */
  readonly sha256: string
  /** The link that worked: a fresh one, where the first had expired. */
  readonly url: string
  readonly content_type: string
}

/**
 * Files of earlier commands, by path, so that the names of two hundred outputs are not each compared with as many
 * files.
 */
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
 * The earlier file with this name, which may contain `{ext}`, if its bytes are still the same. The result has its
 * path as `name` is written.
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
