/**
 * Files in a folder on this machine. A key is a path in the folder. A file is missing only if the folder exists and
 * does not contain it. A missing folder and every other disk error is `StorageUnavailable`.
 */
import type { Stats } from 'node:fs'
import { lstat, mkdir, open, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { flushFolder, removeFile, replaceFile, writeAtomically } from '../../host/files.js'
import { removeFolder } from '../../host/own-folder.js'
import { describeReason, errorCode, isSystemError } from '../../host/system-error.js'
import { type FileSource, type FileStore, type Storage, StorageUnavailable } from './contract.js'

/** Stores files in a folder of the data folder. */
export const createLocalStorage = (folder: string): Storage => ({
  files: createLocalFiles(folder),
  check: () => checkFolder(folder),
})

/** `put` moves a source file, so its path must be on the same file system. */
export function createLocalFiles(folder: string): FileStore {
  const pathOf = (key: string) => join(folder, key)

  /** Returns undefined if nothing has the path, and the folder exists. */
  async function unlessMissing<Found>(found: Promise<Found>): Promise<Found | undefined> {
    try {
      return await found
    } catch (error) {
      if (!isMissing(error)) throw unavailable(error)
    }
    await checkFolder(folder)
    return undefined
  }
  const find = (path: string): Promise<Stats | undefined> => unlessMissing(lstat(path))
  /** The subfolders of a file, from the outermost. */
  function parentsOf(path: string): readonly string[] {
    const parent = dirname(path)
    return parent === folder ? [] : [...parentsOf(parent), parent]
  }

  async function moveIntoPlace(path: string, source: FileSource): Promise<void> {
    // Does not create the folder itself: if it is missing, a disk may not be mounted.
    for (const parent of parentsOf(path)) await makeFolder(parent)
    if ('path' in source) await replaceFile(source.path, path)
    else await writeAtomically(path, source.bytes, { mode: 0o600 })
  }

  return {
    pathOf,
    async put(key, source) {
      const path = pathOf(key)
      const bytes = await bytesOf(source)
      const found = await find(path)
      // If the source is missing, an earlier attempt moved it there and then failed.
      const isStored = found?.isFile() === true && (bytes instanceof Error || found.size === bytes)
      if (bytes instanceof Error && !isStored) throw bytes
      try {
        // Replaces a file that a crash of the system left incomplete, and a link.
        if (!isStored) await moveIntoPlace(path, source)
        // Writes the names to the disk before the database records the file as stored.
        for (const each of [folder, ...parentsOf(path)]) await flushFolder(each)
      } catch (error) {
        throw isPermanent(error) ? error : unavailable(error)
      }
    },
    async find(key) {
      const path = pathOf(key)
      const stats = await find(path)
      if (stats === undefined || !stats.isFile()) return undefined
      return {
        bytes: stats.size,
        async read(range) {
          const file = await open(path).catch((error) => {
            throw unavailable(error)
          })
          return file.createReadStream(range && { start: range.start, end: range.end })
        },
      }
    },
    async remove(key) {
      const path = pathOf(key)
      if ((await find(path)) === undefined) return
      await removeFile(path).catch((error) => {
        throw unavailable(error)
      })
      // Removes each subfolder with its last file.
      for (const parent of parentsOf(path).toReversed()) await rmdir(parent).catch(() => {})
    },
    async removeBelow(runId) {
      const path = pathOf(runId)
      const found = await find(path)
      if (found === undefined) return
      // Of a link, removes only the link itself.
      await (found.isSymbolicLink() ? removeFile(path) : removeFolder(path)).catch((error) => {
        throw unavailable(error)
      })
    },
  }
}

const isMissing = (error: unknown): boolean => /^(ENOENT|ENOTDIR|ENAMETOOLONG)$/.test(errorCode(error) ?? '')

/** Whether a retry cannot succeed: the file system rejects the name, or the source is on another file system. */
const isPermanent = (error: unknown): boolean =>
  /^(EILSEQ|EINVAL|ENAMETOOLONG|EXDEV)$/.test(errorCode(error) ?? '')

const unavailable = (error: unknown): unknown =>
  isSystemError(error)
    ? new StorageUnavailable(`${error.syscall}: ${describeReason(error)}`, { cause: error })
    : error

async function checkFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch((error) => {
    throw unavailable(error)
  })
  if (!found.isDirectory()) throw new StorageUnavailable('a file is in place of the folder')
}

/** Returns the size, or the error if the source file is missing. */
async function bytesOf(source: FileSource): Promise<number | Error> {
  if ('bytes' in source) return source.bytes.byteLength
  try {
    return (await lstat(source.path)).size
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return error as Error
    throw unavailable(error)
  }
}

const makeFolder = (path: string): Promise<void> =>
  mkdir(path, { mode: 0o700 }).catch((error) => {
    if (errorCode(error) !== 'EEXIST') throw error
  })
