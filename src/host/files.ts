/**
 * Writes files safely against crashes and other processes: content goes to a temporary file in the same folder, which
 * is renamed when it is complete. All functions throw the system's errors.
 */
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, constants, createReadStream, lstatSync, openSync, readSync } from 'node:fs'
import { copyFile, type FileHandle, lstat, open, realpath, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { cutToBytes } from '../protocol/text.js'
import { type Clock, systemClock } from './clock.js'
import { makeFolders } from './directories.js'
import { type FileSystem, hasNoLinks, isPosix, systemFiles } from './file-system.js'
import { retry } from './retry.js'
import { errorCode } from './system-error.js'

/** Maximum length of a file name on common file systems (ext4, APFS, NTFS). */
const MAX_NAME_BYTES = 255

/**
 * Returns a unique hidden path in the folder of `path`, with a name that file systems accept. `owner`: 8 hexadecimal digits of
 * those who may remove it when they find it later.
 */
export function temporaryBeside(path: string, owner = ''): string {
  const ending = `.${`${owner}${randomBytes(6).toString('hex')}`.slice(0, 12)}.part`
  const beginning = cutToBytes(basename(path), MAX_NAME_BYTES - ending.length - 1)
  return join(dirname(path), `.${beginning}${ending}`)
}

/**
 * Returns the name of the file that a temporary file of this owner is for. Cut if it is very long; undefined for other names.
 * Without `owner`, of any.
 */
export function targetOfTemporary(name: string, owner = ''): string | undefined {
  const [, target, digits = ''] = /^\.(.*)\.([0-9a-f]{12})\.part$/s.exec(name) ?? []
  return digits.startsWith(owner) ? target : undefined
}

/** Removes a file if it exists. */
export async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** Writes all of `bytes`, at `position` or at the current position. A single `writev` may write only a part. */
export async function writeFully(
  handle: FileHandle,
  bytes: Uint8Array | readonly Uint8Array[],
  position?: number,
): Promise<void> {
  let at = position
  for (let rest = bytes instanceof Uint8Array ? [bytes] : bytes; rest.length > 0; ) {
    const { bytesWritten } = await handle.writev(rest, at)
    if (at !== undefined) at += bytesWritten
    rest = withoutFirst(bytesWritten, rest)
  }
}

function withoutFirst(bytes: number, chunks: readonly Uint8Array[]): readonly Uint8Array[] {
  let left = bytes
  for (const [at, chunk] of chunks.entries()) {
    if (left < chunk.byteLength) return [chunk.subarray(left), ...chunks.slice(at + 1)]
    left -= chunk.byteLength
  }
  return []
}

/** Flushes a file to disk (fsync). Does nothing on file systems that do not support it. */
export async function flush(handle: FileHandle): Promise<void> {
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'ENOSYS'].includes(errorCode(error) ?? '')) throw error
  }
}

/** Flushes a folder, so that the names of its files survive a power failure, if the system can do that. */
export async function flushFolder(path: string): Promise<void> {
  if (!isPosix) return
  const handle = await open(path, 'r')
  await flush(handle).finally(() => handle.close())
}

/** Windows reports these while an editor, git or a virus scanner has one of the files open, usually for a moment. */
const HELD_ERRORS = new Set(['EPERM', 'EACCES', 'EBUSY'])
/** Without EPERM, which also means that the file system has no links. */
const HELD_LINK_ERRORS = new Set(['EACCES', 'EBUSY'])
const HELD_PAUSE_MS = 100
/** Two seconds. */
const MAX_HELD_PAUSES = 20

interface ReplaceOptions {
  readonly clock?: Clock | undefined
  /** Called before each try. If it throws, nothing is replaced. */
  beforeReplace?(): void
  /** For tests. */
  readonly renameFile?: typeof rename
}

/** Renames a file, and replaces `to`. Tries again for two seconds while another program holds one of the files. */
export const replaceFile = (
  from: string,
  to: string,
  { clock = systemClock, beforeReplace, renameFile = rename }: ReplaceOptions = {},
): Promise<void> =>
  retryWhileHeld(HELD_ERRORS, clock, () => {
    beforeReplace?.()
    return renameFile(from, to)
  })

const retryWhileHeld = (codes: ReadonlySet<string>, clock: Clock, work: () => Promise<void>): Promise<void> =>
  retry<unknown, void>({
    clock,
    attempt: () => work().catch((error: unknown) => error),
    decide(error, number) {
      if (error === undefined) return { done: undefined }
      const isHeld = codes.has(errorCode(error) ?? '') && number <= MAX_HELD_PAUSES
      return isHeld ? { retryInMs: HELD_PAUSE_MS } : { fail: error }
    },
  })

interface AtomicWriteOptions extends ReplaceOptions {
  readonly mode?: number
  readonly isFlushed?: boolean
}

/**
 * Replaces or creates `path` in one step: a reader sees either the old content or the new content. The umask applies to
 * `mode`. Without `isFlushed`, the content may be lost on power failure.
 */
export async function writeAtomically(
  path: string,
  content: string | Uint8Array,
  { mode = 0o666, isFlushed = true, ...replacing }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = temporaryBeside(path)
  try {
    const handle = await open(temporary, 'wx', mode)
    try {
      await writeFully(handle, typeof content === 'string' ? Buffer.from(content) : content)
      if (isFlushed) await flush(handle)
    } finally {
      await handle.close()
    }
    await replaceFile(temporary, path, replacing)
  } catch (error) {
    await removeFile(temporary).catch(() => {})
    throw error
  }
}

/**
 * Moves a file in one step, replaces `to`, and creates its parent folders. Copies a file from another file system, and
 * copies the content behind a link. The link itself stays, because a relative link may not work from another folder.
 */
export async function moveOver(from: string, to: string): Promise<void> {
  makeFolders(dirname(to))
  const isLink = (await lstat(from)).isSymbolicLink()
  try {
    if (!isLink) return await replaceFile(from, to)
  } catch (error) {
    if (errorCode(error) !== 'EXDEV') throw error
  }
  await copyAtomically(from, to)
  if (!isLink) await removeFile(from)
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
    await copyAtomically(from, to)
  }
}

/** Copies in one step: a reader sees either the old content or the new content. */
async function copyAtomically(from: string, to: string): Promise<void> {
  const temporary = temporaryBeside(to)
  try {
    await copyFile(from, temporary, constants.COPYFILE_EXCL)
    await flushCopy(temporary)
    await replaceFile(temporary, to)
  } catch (error) {
    await removeFile(temporary).catch(() => {})
    throw error
  }
}

/** Windows flushes only a file that is open for writing. A copy of a read-only file can be opened only for reading. */
async function flushCopy(path: string): Promise<void> {
  const handle = await open(path, 'r+').catch(() => open(path, 'r'))
  try {
    await flush(handle)
  } catch (error) {
    if (errorCode(error) !== 'EPERM') throw error
  } finally {
    await handle.close()
  }
}

interface MoveOptions extends Pick<ReplaceOptions, 'clock' | 'renameFile'> {
  readonly fileSystem?: Pick<FileSystem, 'link'> | undefined
}

/** Renames a file, but fails with EEXIST if `to` exists, also in a race: a plain rename would replace `to`. */
export async function moveWithoutReplacing(
  from: string,
  to: string,
  { fileSystem = systemFiles, ...replacing }: MoveOptions = {},
): Promise<void> {
  try {
    await retryWhileHeld(HELD_LINK_ERRORS, replacing.clock ?? systemClock, () => fileSystem.link(from, to))
  } catch (error) {
    if (!hasNoLinks(error)) throw error
    return claimThenMove(from, to, replacing)
  }
  await removeFile(from).catch(() => {})
}

/** For file systems without links: reserves the name with an empty file, then replaces or removes only that file. */
async function claimThenMove(from: string, to: string, replacing: ReplaceOptions): Promise<void> {
  const claim = await open(to, 'wx')
  const isForeign = () => {
    const found = lstatSync(to, { throwIfNoEntry: false })
    return found !== undefined && !(found.isFile() && found.size === 0)
  }
  const beforeReplace = () => {
    if (isForeign()) throw new FileExists(to)
  }
  try {
    await claim.close()
    await replaceFile(from, to, { ...replacing, beforeReplace })
  } catch (error) {
    if (!isForeign()) await removeFile(to).catch(() => {})
    throw error
  }
}

/** Another program has written the file since its name was reserved. */
class FileExists extends Error {
  override readonly name = 'FileExists'
  readonly code = 'EEXIST'
  constructor(path: string) {
    super(`${path} exists`)
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
