/**
 * Writes files safely against crashes and other processes: content goes to a temporary file in the same folder, which
 * is renamed when it is complete. All functions throw the system's errors.
 */
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, constants, createReadStream, openSync, readSync, statSync } from 'node:fs'
import { copyFile, type FileHandle, open, realpath, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { cutToBytes } from '../protocol/text.js'
import { systemClock } from './clock.js'
import { type FileSystem, hasNoLinks, isPosix, makeFolders, systemFiles } from './file-system.js'
import { retryErrors } from './retry.js'
import { errorCode } from './system-error.js'

/** Maximum length of a file name on common file systems (ext4, APFS, NTFS). */
const MAX_NAME_BYTES = 255

/** Returns a unique hidden path in the folder of `path`, with a name that file systems accept. */
export function temporaryBeside(path: string): string {
  const ending = `.${randomBytes(6).toString('hex')}.part`
  const beginning = cutToBytes(basename(path), MAX_NAME_BYTES - ending.length - 1)
  return join(dirname(path), `.${beginning}${ending}`)
}

/** Returns the name of the file that a temporary file is for. Cut if it is very long; undefined for other names. */
export const targetOfTemporary = (name: string): string | undefined =>
  /^\.(.*)\.[0-9a-f]{12}\.part$/s.exec(name)?.[1]

/** Removes a file if it exists. */
export async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** EPERM: Windows flushes only a file that is open for writing. */
const CANNOT_FLUSH: readonly (string | undefined)[] = ['EINVAL', 'ENOTSUP', 'ENOSYS', 'EPERM']

/** Flushes a file to disk (fsync). Does nothing on file systems that do not support it. */
export async function flush(handle: FileHandle): Promise<void> {
  try {
    await handle.sync()
  } catch (error) {
    if (!CANNOT_FLUSH.includes(errorCode(error))) throw error
  }
}

/** Flushes a folder, so that the names of its files survive a power failure, if the system can do that. */
export async function flushFolder(path: string): Promise<void> {
  if (!isPosix) return
  const handle = await open(path, 'r')
  await flush(handle).finally(() => handle.close())
}

/** Windows reports these while an editor, git or a virus scanner has one of the files open, usually for a moment. */
const HELD_ERRORS: readonly (string | undefined)[] = ['EPERM', 'EACCES', 'EBUSY']
const HELD_PAUSE_MS = 100
/** Two seconds. */
const MAX_HELD_PAUSES = 20

/**
 * Renames a file, and replaces `to`. Tries again for two seconds while another program holds one of the files.
 * `beforeReplace` is called before each try. If it throws, nothing is replaced.
 */
export const replaceFile = (from: string, to: string, beforeReplace = () => {}): Promise<void> =>
  retryErrors(
    async () => {
      beforeReplace()
      await rename(from, to)
    },
    {
      clock: systemClock,
      pauseMs: (error, number) =>
        HELD_ERRORS.includes(errorCode(error)) && number <= MAX_HELD_PAUSES ? HELD_PAUSE_MS : undefined,
    },
  )

interface AtomicWriteOptions {
  readonly mode?: number
  readonly isFlushed?: boolean
  beforeReplace?(): void
}

/**
 * Replaces or creates `path` in one step: a reader sees either the old content or the new content. The umask applies to
 * `mode`. Without `isFlushed`, the content may be lost on power failure.
 */
export async function writeAtomically(
  path: string,
  content: string | Uint8Array,
  { mode = 0o666, isFlushed = true, beforeReplace }: AtomicWriteOptions = {},
): Promise<void> {
  await replaceBy(path, beforeReplace, async (temporary) => {
    const handle = await open(temporary, 'wx', mode)
    try {
      await handle.writeFile(content)
      if (isFlushed) await flush(handle)
    } finally {
      await handle.close()
    }
  })
}

/** Replaces `path` by the file that `make` creates at a temporary path. */
async function replaceBy(
  path: string,
  beforeReplace: (() => void) | undefined,
  make: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = temporaryBeside(path)
  try {
    await make(temporary)
    await replaceFile(temporary, path, beforeReplace)
  } catch (error) {
    await removeFile(temporary).catch(() => {})
    throw error
  }
}

/**
 * Gives a file a second name (a hard link), and creates the parent folders of `to`. Copies the file if the file system
 * has no hard links. Fails with EEXIST if `to` exists and hard links work.
 */
export async function copyOrLink(
  from: string,
  to: string,
  { link }: Pick<FileSystem, 'link'> = systemFiles,
): Promise<void> {
  makeFolders(dirname(to))
  try {
    await link(await realpath(from), to)
  } catch (error) {
    if (!hasNoLinks(error)) throw error
    await replaceBy(to, undefined, async (temporary) => {
      await copyFile(from, temporary, constants.COPYFILE_EXCL)
      // For reading, because the copy of a read-only file cannot be opened for writing.
      const handle = await open(temporary, 'r')
      await flush(handle).finally(() => handle.close())
    })
  }
}

/** Renames a file, but fails with EEXIST if `to` exists, also in a race: a plain rename would replace `to`. */
export async function moveWithoutReplacing(
  from: string,
  to: string,
  { link }: Pick<FileSystem, 'link'> = systemFiles,
): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (!hasNoLinks(error)) throw error
    return claimThenMove(from, to)
  }
  await removeFile(from).catch(() => {})
}

/** For file systems without links: reserves the name with an empty file, then replaces or removes that file. */
async function claimThenMove(from: string, to: string): Promise<void> {
  const claim = await open(to, 'wx')
  await claim.close()
  try {
    await rename(from, to)
  } catch (error) {
    if (statSync(to, { throwIfNoEntry: false })?.size === 0) await removeFile(to).catch(() => {})
    throw error
  }
}

/** Returns up to `bytes` first bytes of a file. Do not call it for a pipe: it would wait for a writer. */
export function readBeginning(path: string, bytes: number): Buffer {
  const file = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(bytes)
    return buffer.subarray(0, readSync(file, buffer, 0, bytes, 0))
  } finally {
    closeSync(file)
  }
}

const CHUNK_BYTES = 1024 * 1024

/** Returns the SHA-256 in hexadecimal digits. Reads in chunks, not the whole file. Rejects with the signal's reason. */
export async function sha256OfFile(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  signal?.throwIfAborted()
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk)
    signal?.throwIfAborted()
  }
  return hash.digest('hex')
}
