/**
 * Copies outputs and reference images from a data folder to another file store. Skips files that the store already has.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type RushesError, usageError } from '../../errors.js'
import { sha256OfFile } from '../../host/files.js'
import { describeError, errorCode } from '../../host/system-error.js'
import type { DataFolders } from '../data-folders.js'
import type { FileStore } from '../files/contract.js'
import { outputKey, type StoredOutput } from '../stored-run.js'

const CONCURRENT_FILES = 4

export interface FilesCopied {
  readonly copied: number
  readonly bytes: number
  /** Files that were already in the storage. */
  readonly present: number
  /** Outputs without a file. More than 0 only with `allowMissing`. */
  readonly missing: number
}

export interface CopyOptions {
  readonly folders: DataFolders
  readonly storage: { readonly outputs: FileStore; readonly inputs: FileStore }
  readonly allowMissing: boolean
  readonly signal?: AbortSignal | undefined
  onProgress?(files: number): void
}

/** Files that the database currently records. */
export interface KnownFiles {
  readonly outputs: Iterable<StoredOutput>
  /** SHA-256 of each image that runs may need, by its key. */
  readonly images: ReadonlyMap<string, string>
}

interface Item {
  readonly path: string
  readonly key: string
  readonly sha256: string
  readonly contentType: string | undefined
  readonly store: FileStore
}

/**
 * Throws `RushesError` (usage) if a file is missing, cannot be read, or has a different checksum than recorded.
 */
export async function copyFiles(options: CopyOptions, known: KnownFiles): Promise<FilesCopied> {
  const { folders, storage, allowMissing, signal, onProgress } = options
  const total = { copied: 0, bytes: 0, present: 0, missing: 0 }
  let firstMissing = ''

  async function copy({ path, key, sha256, contentType, store }: Item): Promise<void> {
    signal?.throwIfAborted()
    const found = await stat(path).catch((error) => {
      if (errorCode(error) !== 'ENOENT') throw unreadable(path, error)
      return undefined
    })
    if (found === undefined) {
      total.missing++
      firstMissing ||= path
      return
    }
    const hash = await sha256OfFile(path, signal).catch((error) => {
      signal?.throwIfAborted()
      throw unreadable(path, error)
    })
    if (hash !== sha256)
      throw usageError(
        `${path} has other bytes than were recorded; nothing was moved to the database.`,
        'Restore it from a backup, or remove it: its run then has no output any more.',
      )
    if ((await store.find(key))?.bytes === found.size) total.present++
    else {
      await store.put(key, { path }, { contentType, signal })
      total.copied++
      total.bytes += found.size
    }
    onProgress?.(total.copied + total.present)
  }

  async function* items({ outputs, images }: KnownFiles): AsyncGenerator<Item> {
    for (const output of outputs) {
      const { sha256, contentType } = output
      const key = outputKey(output)
      yield { path: join(folders.outputs, key), key, sha256, contentType, store: storage.outputs }
    }
    // Lists the folder to find the images that exist.
    for (const key of await readdir(folders.inputs)) {
      const sha256 = images.get(key)
      if (sha256 !== undefined)
        yield { path: join(folders.inputs, key), key, sha256, contentType: undefined, store: storage.inputs }
    }
  }

  const queue = items(known)
  const copyLoop = async () => {
    for await (const item of queue) await copy(item)
  }
  // All copy loops share one async generator, which serves its callers one after the other.
  await Promise.all(Array.from({ length: CONCURRENT_FILES }, copyLoop))
  if (total.missing > 0 && !allowMissing)
    throw usageError(
      `Outputs without a file: ${total.missing}, for example ${firstMissing}. Nothing was moved to the database.`,
      'If --retain has removed them, add --allow-missing. Otherwise restore the files first.',
    )
  return total
}

const unreadable = (path: string, error: unknown): RushesError =>
  usageError(
    `Cannot read ${describeError(error, path)}; nothing was moved to the database.`,
    'Make it readable for this user, and run the command again.',
  )
