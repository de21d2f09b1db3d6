/**
 * The last step of a download: gives the complete file its final name. Also finds files of earlier commands that are
 * unchanged.
 */
import { lstatSync, type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { RushesError, type RushesErrorOptions } from '../errors.js'
import type { FileSystem } from '../host/file-system.js'
import { moveWithoutReplacing, replaceFile, sha256OfFile } from '../host/files.js'
import { describeReason, errorCode } from '../host/system-error.js'
import type { Destination, DownloadedFile } from '../protocol/media.js'
import { printable } from '../protocol/text.js'
import { withExtension } from './file-names.js'

export interface Obstacle {
  /** For example `fox.mp4 already exists`. */
  readonly message: string
  readonly hint: string | undefined
}

/**
 * Returns the obstacle that prevents a file at `path`, or undefined. An early check: `moveIntoPlace` is safe without
 * it.
 *
 * `overwrite` replaces only files and links: as root, `-o /dev/null` would otherwise replace the device. The link
 * itself is replaced, not its target (curl writes to the target), so that the file is complete from the start and
 * nothing is written outside the given folder.
 */
export function obstacleAt(path: string, overwrite: boolean): Obstacle | undefined {
  const named = printable(path)
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return undefined
    if (found.isDirectory()) return { message: `${named} is a folder`, hint: `To save into it: -o ${named}/` }
    const target = found.isSymbolicLink() ? targetOf(path) : found
    if (target !== undefined && !target.isFile())
      return {
        message: `${named} is not a regular file and is not replaced`,
        hint: 'To write to standard output: -o -',
      }
    return overwrite
      ? undefined
      : { message: `${named} already exists`, hint: 'Use --overwrite to replace it.' }
  } catch (error) {
    return { message: `${named}: ${describeFileError(error)}`, hint: undefined }
  }
}

/** Returns the stats of a link's target; undefined if it does not exist. */
function targetOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

/** Throws `download_failed` if there is an obstacle. */
export function refuseObstacle(path: string, overwrite: boolean): void {
  const obstacle = obstacleAt(path, overwrite)
  if (obstacle !== undefined) throw downloadFailed(obstacle.message, { hint: obstacle.hint })
}

/**
 * Moves the part to its final path. Without `mayReplace` it never replaces a file, even in a race with another process.
 */
export async function moveIntoPlace(
  part: string,
  { path, mayReplace }: Destination,
  fileSystem?: FileSystem,
): Promise<void> {
  // The early check ran before the download. Without `mayReplace`, the move itself checks.
  if (mayReplace) refuseObstacle(path, mayReplace)
  try {
    await withWriteErrors(path, () =>
      mayReplace ? replaceFile(part, path) : moveWithoutReplacing(part, path, fileSystem),
    )
  } catch (error) {
    refuseObstacle(path, mayReplace)
    throw error
  }
}

/**
 * Finds an earlier file with this name, which may contain `{ext}`, if its bytes are still the same. The paths of the
 * files must be absolute. The path in the result has the same form as `name`.
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

/** Describes why a file cannot be written. ENOENT then means that its folder is missing. */
const describeFileError = (error: unknown): string =>
  errorCode(error) === 'ENOENT' && (error as { syscall?: unknown }).syscall !== 'mkdir'
    ? 'the folder does not exist'
    : printable(describeReason(error))

/** `what`: a sentence without its period. */
export const downloadFailed = (what: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('download_failed', `${what}.`, options)

/** Runs `work` and converts its system errors to `download_failed` for `path`. */
export async function withWriteErrors<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RushesError || errorCode(error) === undefined) throw error
    throw downloadFailed(`Could not write ${printable(path)}: ${describeFileError(error)}`, { cause: error })
  }
}
