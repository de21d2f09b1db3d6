/**
 * Chooses the path of the page and writes it. Replaces a page of an earlier command; replaces any other file only with
 * `--overwrite`.
 */
import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { withWriteErrors } from '../../download/failures.js'
import { obstacleAt } from '../../download/final-files.js'
import { namesFolder } from '../../download/target.js'
import { usageError } from '../../errors.js'
import { BEGINNING_BYTES, isGallery } from '../../gallery/index.js'
import { isFolder, makeFolders, reasonUnwritable } from '../../host/directories.js'
import { readBeginning, writeAtomically } from '../../host/files.js'
import { printable } from '../../protocol/text.js'

export const PAGE_NAME = 'gallery.html'

/** Returns the path of the page, as printed. Throws `usage` for an invalid path, before anything is written. */
export function checkPagePath(output: string, { overwrite }: { readonly overwrite: boolean }): string {
  if (output === '') throw usageError('The output path is empty.', `Give a file or a folder: -o ${PAGE_NAME}`)
  if (output.includes('\0')) throw usageError('The output path contains a NUL character.')
  const path = namesFolder(output) || isFolder(output) ? join(output, PAGE_NAME) : output
  const reason = reasonUnwritable(dirname(resolve(path)))
  if (reason !== undefined)
    throw usageError(`Cannot write the page: ${printable(reason)}.`, 'Choose another path with -o <path>.')
  const obstacle = isEarlierPage(path) ? undefined : obstacleAt(path, overwrite)
  if (obstacle === undefined) return path
  throw usageError(
    overwrite ? `${obstacle.message}.` : `${obstacle.message}, and is not a page of \`rushes gallery\`.`,
    overwrite
      ? 'Choose another path with -o <path>.'
      : 'Use --overwrite to replace it, or choose another path with -o <path>.',
  )
}

/** Throws `download_failed` when the page cannot be written. */
export async function writePage(path: string, html: string): Promise<void> {
  await withWriteErrors(path, async () => {
    makeFolders(dirname(resolve(path)))
    await writeAtomically(path, html)
  })
}

function isEarlierPage(path: string): boolean {
  try {
    // Check that it is a file first: opening a named pipe would wait for its writer.
    return statSync(path).isFile() && isGallery(readBeginning(path, BEGINNING_BYTES).toString())
  } catch {
    return false
  }
}
