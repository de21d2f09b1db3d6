/**
 * Files that survive crashes and neighbours: everything is written under a temporary name in the folder where it
 * belongs, and gets its own name when it is whole. Errors are the system's own, with their `code`.
 */
import { randomBytes } from 'node:crypto'
import { type FileHandle, link, mkdtemp, open, readFile, rename, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { errorCode, makeFolders } from './directories.js'

/** What one component of a path may hold on the file systems in use (ext4, APFS, NTFS). */
export const MAX_NAME_BYTES = 255

/** The longest beginning of at most `mostBytes` bytes of UTF-8 that cuts no character in two. */
export function cutToBytes(text: string, maxBytes: number): string {
  let kept = ''
  let bytes = 0
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > maxBytes) break
    kept += character
  }
  return kept
}

/** A hidden name, different at every call, in the folder of `path`, and never too long because `path` is long. */
export function temporaryBeside(path: string): string {
  const ending = `.${randomBytes(6).toString('hex')}.part`
  const beginning = cutToBytes(basename(path), MAX_NAME_BYTES - ending.length - 1)
  return join(dirname(path), `.${beginning}${ending}`)
}

/** A new folder for the user alone, in the system's place for temporary files. */
export const makeTemporaryFolder = (prefix: string): Promise<string> => mkdtemp(join(tmpdir(), prefix))

/** Removes a file that may already be gone. */
export async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/**
 * Writes all of `bytes`: a single `write` may take less than it was given. Where the file stands, unless `position` says
 * from where on.
 */
export async function writeFully(handle: FileHandle, bytes: Uint8Array, position?: number): Promise<void> {
  for (let offset = 0; offset < bytes.byteLength; ) {
    const at = position === undefined ? null : position + offset
    const { bytesWritten } = await handle.write(bytes, offset, bytes.byteLength - offset, at)
    offset += bytesWritten
  }
}

/** Waits until the disk holds the file. File systems that cannot say so are taken at their word. */
export async function flush(handle: FileHandle): Promise<void> {
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'ENOSYS'].includes(errorCode(error) ?? '')) throw error
  }
}

/**
 * Replaces or makes `path` in one step: a reader sees the old content or the new one, never a part.
 * `mode` is that of a new file, less the umask. Unless it is flushed, a failure of the machine may leave neither.
 */
export async function writeAtomically(
  path: string,
  content: string | Uint8Array,
  { mode = 0o666, isFlushed = true }: { readonly mode?: number; readonly isFlushed?: boolean } = {},
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
    await rename(temporary, path)
  } catch (error) {
    await removeFile(temporary).catch(() => {})
    throw error
  }
}

/** The same bytes under another name, in one step; its folders are made. */
export async function copyAtomically(from: string, to: string): Promise<void> {
  makeFolders(dirname(to))
  await writeAtomically(to, await readFile(from))
}

/** File systems without hard links (FAT, some network and container mounts) answer with one of these. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EXDEV', 'EINVAL'])

/**
 * Renames a file, and fails with EEXIST where there is something already, also when it came a moment ago: a plain
 * rename would replace it. `linkFile` is for tests.
 */
export async function moveWithoutReplacing(from: string, to: string, linkFile = link): Promise<void> {
  try {
    await linkFile(from, to)
  } catch (error) {
    if (!NO_LINKS.has(errorCode(error) ?? '')) throw error
    return claimThenMove(from, to)
  }
  await removeFile(from).catch(() => {})
}

/** Without links, the name is taken by an empty file first, which then is our own to replace. */
async function claimThenMove(from: string, to: string): Promise<void> {
  const claim = await open(to, 'wx')
  await claim.close()
  try {
    await rename(from, to)
  } catch (error) {
    await removeFile(to).catch(() => {})
    throw error
  }
}
