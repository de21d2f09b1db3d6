/** Files in a folder of this machine. The key is the path in it. */
import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm, rmdir, utimes } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Clock } from '../../host/clock.js'
import type { FileStore, Storage } from './contract.js'

/** Outputs and inputs in folders of the data folder. */
export const createLocalStorage = (
  folders: { readonly outputs: string; readonly inputs: string },
  clock: Pick<Clock, 'now'>,
): Storage => ({
  outputs: createLocalFiles(folders.outputs, clock),
  inputs: createLocalFiles(folders.inputs, clock),
})

/** `put` moves the file at a path, so the path must be on the same file system. */
export function createLocalFiles(folder: string, clock: Pick<Clock, 'now'>): FileStore {
  const pathOf = (key: string) => join(folder, key)
  const statOf = (path: string) => lstat(path).catch(() => undefined)

  const renew = (path: string): Promise<boolean> => {
    const now = new Date(clock.now())
    return utimes(path, now, now).then(
      () => true,
      () => false,
    )
  }

  async function write(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(bytes)
      await file.sync()
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    } finally {
      await file.close()
    }
  }

  return {
    pathOf,
    async put(key, source) {
      const path = pathOf(key)
      if (await renew(path)) return
      if (dirname(path) !== folder) await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      if ('path' in source) await rename(source.path, path)
      else await write(path, source.bytes)
      // The age counts from here, whenever the file at the path was written.
      await renew(path)
    },
    async find(key) {
      const path = pathOf(key)
      const stats = await statOf(path)
      if (stats === undefined || !stats.isFile()) return undefined
      return {
        bytes: stats.size,
        modifiedAtMs: stats.mtimeMs,
        read: async (range) => createReadStream(path, range && { start: range.start, end: range.end }),
      }
    },
    async remove(key) {
      const path = pathOf(key)
      await rm(path, { force: true })
      // The folder goes with its last file.
      if (dirname(path) !== folder) await rmdir(dirname(path)).catch(() => {})
    },
    async *listOlder(ageMs) {
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (entry.isDirectory()) continue
        const path = join(entry.parentPath, entry.name)
        const stats = await statOf(path)
        if (stats !== undefined && clock.now() - stats.mtimeMs > ageMs) yield relative(folder, path)
      }
    },
  }
}
