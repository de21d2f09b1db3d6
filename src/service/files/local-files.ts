/**
 * Files in a folder on this machine. A key is a path in the folder. A file is missing only if the folder exists and
 * does not contain it. A missing folder and every other disk error is `StorageUnavailable`.
 */
import type { Dirent, Stats } from 'node:fs'
import { lstat, mkdir, open, readdir, rmdir, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../host/clock.js'
import { flushFolder, removeFile, replaceFile, writeAtomically } from '../../host/files.js'
import { describeReason, errorCode, isSystemError } from '../../host/system-error.js'
import { type FileSource, type FileStore, type Storage, StorageUnavailable } from './contract.js'

/** Stores outputs and inputs in folders of the data folder. */
export const createLocalStorage = (
  folders: { readonly outputs: string; readonly inputs: string; readonly root: string },
  clock: Clock,
): Storage => ({
  root: createLocalFiles(folders.root, clock),
  outputs: createLocalFiles(folders.outputs, clock),
  inputs: createLocalFiles(folders.inputs, clock),
  async check() {
    for (const folder of [folders.outputs, folders.inputs]) await checkFolder(folder)
  },
})

/** `put` moves a source file, so its path must be on the same file system. */
export function createLocalFiles(folder: string, clock: Clock): FileStore {
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
  // A subfolder is removed with its last file, even while files are listed.
  const list = async (path: string): Promise<readonly Dirent[]> =>
    (await unlessMissing(readdir(path, { withFileTypes: true }))) ?? []

  async function moveIntoPlace(path: string, source: FileSource): Promise<void> {
    const parent = dirname(path)
    // Does not create its parents: a missing folder may mean that a disk is not mounted.
    if (parent !== folder) await makeFolder(parent)
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
      const isStored = found !== undefined && (bytes instanceof Error || found.size === bytes)
      if (bytes instanceof Error && !isStored) throw bytes
      try {
        // Replaces a file that a crash of the system left incomplete.
        if (!isStored) {
          await moveIntoPlace(path, source)
          // Sets the start of the age, independent of the time at which the source was written.
          const now = new Date(clock.now())
          await utimes(path, now, now)
        }
        // Writes the names to the disk before the database records the file as stored.
        for (const each of new Set([dirname(path), folder])) await flushFolder(each)
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
        modifiedAtMs: stats.mtimeMs,
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
      // Removes the subfolder with its last file.
      if (dirname(path) !== folder) await rmdir(dirname(path)).catch(() => {})
    },
    async *listOlder(ageMs) {
      // The files behind a link may be those of another program.
      if ((await find(folder))?.isSymbolicLink()) return
      let failure: unknown
      const noteFailure = (error: unknown) => {
        failure ??= error
      }
      for (const entry of await list(folder)) {
        const { name } = entry
        const inner = entry.isDirectory() ? await list(join(folder, name)).catch(noteFailure) : [entry]
        for (const each of inner ?? []) {
          const key = each === entry ? name : `${name}/${each.name}`
          const stats = await find(pathOf(key)).catch(noteFailure)
          if (stats?.isDirectory() === false && clock.now() - stats.mtimeMs > ageMs) yield key
        }
      }
      if (failure !== undefined) throw failure
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
