/**
 * Files in a folder of this machine. The key is the path in it. A file is missing when its name is not in the folder; a missing
 * folder, and every other error of the disk, is `StorageUnavailable`.
 */
import { randomBytes } from 'node:crypto'
import type { Dirent, Stats } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rmdir, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../host/clock.js'
import { flush, flushFolder, removeFile } from '../../host/files.js'
import { describeReason, errorCode, isSystemError } from '../../host/system-error.js'
import { type FileSource, type FileStore, type Storage, StorageUnavailable } from './contract.js'

/** Outputs and inputs in folders of the data folder. */
export const createLocalStorage = (
  folders: { readonly outputs: string; readonly inputs: string },
  clock: Pick<Clock, 'now'>,
): Storage => ({
  outputs: createLocalFiles(folders.outputs, clock),
  inputs: createLocalFiles(folders.inputs, clock),
  async check() {
    for (const folder of [folders.outputs, folders.inputs]) await checkFolder(folder)
  },
})

/** `put` moves the file at a path, so the path must be on the same file system. */
export function createLocalFiles(folder: string, clock: Pick<Clock, 'now'>): FileStore {
  const pathOf = (key: string) => join(folder, key)

  /** Undefined when it is not there. */
  const find = async (path: string): Promise<Stats | undefined> => {
    try {
      return await lstat(path)
    } catch (error) {
      if (!isMissing(error)) throw unavailable(error)
    }
    await checkFolder(folder)
    return undefined
  }

  /** A folder goes with its last file, also meanwhile. */
  const list = async (path: string): Promise<readonly Dirent[]> => {
    try {
      return await readdir(path, { withFileTypes: true })
    } catch (error) {
      if (!isMissing(error)) throw unavailable(error)
    }
    await checkFolder(folder)
    return []
  }

  async function write(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(bytes)
      await flush(file)
      await rename(temporary, path)
    } catch (error) {
      await removeFile(temporary).catch(() => {})
      throw error
    } finally {
      await file.close()
    }
  }

  async function place(path: string, source: FileSource): Promise<void> {
    const parent = dirname(path)
    // Without its parents: a folder that is gone may be a disk that is not mounted.
    if (parent !== folder) await makeFolder(parent)
    if ('path' in source) await rename(source.path, path)
    else await write(path, source.bytes)
  }

  return {
    pathOf,
    async put(key, source) {
      const path = pathOf(key)
      const bytes = await bytesOf(source)
      const found = await find(path)
      // A source that is gone was moved there by an attempt that failed after it.
      const isThere = found !== undefined && (bytes instanceof Error || found.size === bytes)
      if (bytes instanceof Error && !isThere) throw bytes
      try {
        // What a crash of the system has left incomplete is replaced.
        if (!isThere) await place(path, source)
        // The age counts from here, whenever the file at the path was written.
        const now = new Date(clock.now())
        await utimes(path, now, now)
        // The names are on the disk before a database says that the file is stored.
        for (const each of new Set([dirname(path), folder])) await flushFolder(each)
      } catch (error) {
        throw isForGood(error) ? error : unavailable(error)
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
      // The folder goes with its last file.
      if (dirname(path) !== folder) await rmdir(dirname(path)).catch(() => {})
    },
    async *listOlder(ageMs) {
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

/** The file system does not take this name, or is not that of the source: waiting changes nothing. */
const isForGood = (error: unknown): boolean =>
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

/** The error, when the file at the path is missing. */
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
