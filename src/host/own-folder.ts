/**
 * A folder that this program created and that other programs can access. Its path is not trusted later: device, inode
 * and owner of the folder are compared before it is read or removed, and no link or mount is followed out of it.
 *
 * On Linux the folder is held open, and its entries are reached through `/proc/self/fd/<n>`, a path that no other
 * program can redirect. Other systems have no such path: there, a folder that is swapped between a comparison and the
 * next step goes unnoticed.
 */
import { randomBytes } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import {
  chmod,
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  rename,
  rmdir,
  unlink,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import {
  assertInPlace,
  FolderReplaced,
  type InodeIdentity,
  isSameMount,
  type Pinned,
  pin,
  pinIfThere,
  wordsFor,
} from './pinned-path.js'
import { describeReason, errorCode } from './system-error.js'

export { FolderReplaced } from './pinned-path.js'

/** Something in the folder could not be removed, such as a mount. The message does not contain the path. */
export class FolderNotRemoved extends Error {
  override readonly name = 'FolderNotRemoved'
  readonly path: string

  constructor(path: string, cause: unknown) {
    super(`The folder could not be removed: ${describeReason(cause)}`, { cause })
    this.path = path
  }
}

/** A file that does not belong to the folder. */
export class ForeignFile extends Error {
  override readonly name = 'ForeignFile'
}

export interface OwnFolder {
  /** The path of the folder, for other programs. */
  readonly path: string
  /**
   * Returns the path of an entry, which stays in this folder until `close`. If the entry is a link, it is followed.
   * Throws `ForeignFile` unless `name` is a plain name.
   */
  entry(name: string): string
  /** Throws `FolderReplaced` unless the folder is still at its path. */
  check(): Promise<void>
  /** Returns the names of its entries. Throws `FolderReplaced`. */
  names(): Promise<readonly string[]>
  /**
   * Makes a plain file private (0600). A file that belongs to another user or has several names (hard links) is
   * replaced by a copy, because other users could change it later. Returns its size in bytes, or undefined if it is not
   * a plain file. Throws `ForeignFile`.
   */
  takeFile(name: string): Promise<number | undefined>
  /** Opens a file for reading and writing. Throws `ForeignFile`, also for a file that `takeFile` would replace. */
  openFile(name: string): Promise<FileHandle>
  /**
   * Removes the folder with its contents, and closes it. Does nothing if the folder no longer exists. Throws
   * `FolderReplaced` and `FolderNotRemoved`.
   */
  remove(): Promise<void>
  /** Closes the handle and keeps the folder. */
  close(): Promise<void>
}

/** Creates a private folder in `parent`, with a name that begins with `prefix`. */
export const makeOwnFolder = async (parent: string, prefix: string): Promise<OwnFolder> =>
  holdFolder(await mkdtemp(join(parent, prefix)))

/** Creates a private folder at `path`. Throws if the path exists. */
export async function makeOwnFolderAt(path: string): Promise<OwnFolder> {
  await mkdir(path, { mode: 0o700 })
  return await holdFolder(path)
}

/** Holds an existing folder: call it before other programs know the folder. Throws `FolderReplaced`. */
export async function holdFolder(path: string): Promise<OwnFolder> {
  const pinned = await pin(path)
  if (!pinned.isFolder) {
    await pinned.close()
    throw new FolderReplaced(path, wordsFor(pinned))
  }
  const check = () => assertInPlace(path, pinned)
  const entry = (name: string) => {
    if (basename(name) !== name || ['', '.', '..'].includes(name)) throw new ForeignFile('Not a file name.')
    return join(pinned.base, name)
  }
  return {
    path,
    entry,
    check,
    async names() {
      await check()
      return await readdir(pinned.base)
    },
    takeFile: async (name) => takeFile(pinned, entry(name)),
    openFile: async (name) => openOwnFile(pinned, entry(name)),
    async remove() {
      try {
        if (!(await isGone(path))) {
          await check()
          await removePinned(path, pinned)
        }
      } finally {
        await pinned.close()
      }
    },
    close: pinned.close,
  }
}

/**
 * Removes a folder and its contents. This or an earlier process of the program must have created it at `path`. Does
 * nothing if the path does not exist. Throws `FolderReplaced` unless it is a plain folder of this user (or of the owner
 * of its parent) on the file system of its parent. Throws `FolderNotRemoved` if something in it cannot be removed. If
 * the parent is a link, it is followed.
 */
export async function removeFolder(path: string): Promise<void> {
  const pinned = await pinIfThere(path)
  if (pinned === undefined) return
  try {
    const parent = await pin(dirname(path), { follow: true })
    await parent.close()
    const uid = pinned.uid === ownUid() ? pinned.uid : parent.uid
    if (!pinned.isFolder || !isSameMount(pinned, parent) || pinned.uid !== uid)
      throw new FolderReplaced(path, wordsFor(pinned, { ...parent, uid }))
    await removePinned(path, pinned)
  } finally {
    await pinned.close()
  }
}

/** Returns the user id of this process; undefined on Windows, where all files have user id 0. */
const ownUid = (): bigint | undefined => {
  const uid = process.geteuid?.()
  return uid === undefined ? undefined : BigInt(uid)
}

const isGone = async (path: string): Promise<boolean> => {
  const found = await pinIfThere(path)
  await found?.close()
  return found === undefined
}

/** Maximum number of tries to empty a folder: another program may still be changing it. */
const MAX_ROUNDS = 5

async function removePinned(path: string, pinned: Pinned): Promise<void> {
  for (let round = 1; ; round++) {
    const failures = await emptyFolder(pinned)
    await assertInPlace(path, pinned)
    try {
      // `rmdir` fails if the folder is not empty or is a link.
      return await rmdir(path)
    } catch (error) {
      if (round === MAX_ROUNDS) throw new FolderNotRemoved(path, failures[0] ?? error)
    }
  }
}

/**
 * Removes the entries of a folder, as far as possible. Returns the errors of the remaining entries. Nested folders are
 * moved up before they are emptied, so that two open folders and short paths are enough at any depth.
 */
async function emptyFolder(root: Pinned): Promise<readonly unknown[]> {
  const failures: unknown[] = []
  const folders: string[] = []

  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await root.verify()
      await work()
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') failures.push(error)
    }
  }

  /** Removes the files of a folder, and leaves its folders to `onFolder`. */
  async function removeFiles(
    folder: Pinned,
    onFolder: (name: string) => Promise<void> | void,
  ): Promise<void> {
    if ((folder.mode & 0o700) !== 0o700) await chmod(folder.base, 0o700).catch(() => {})
    for (const entry of await readdir(folder.base, { withFileTypes: true }))
      await attempt(async () => {
        await folder.verify()
        if (entry.isDirectory()) await onFolder(entry.name)
        else await unlink(join(folder.base, entry.name))
      })
  }

  async function moveUp(folder: Pinned, name: string): Promise<void> {
    const path = join(folder.base, name)
    const free = `.${randomBytes(8).toString('hex')}`
    await withPinnedFolder(path, root, async ({ base, mode }) => {
      // A folder must be writable to be moved, because its `..` entry changes.
      if ((mode & 0o700) !== 0o700) await chmod(base, 0o700).catch(() => {})
    })
    await rename(path, join(root.base, free))
    folders.push(free)
  }

  await attempt(() => removeFiles(root, (name) => void folders.push(name)))
  for (let name = folders.pop(); name !== undefined; name = folders.pop()) {
    const path = join(root.base, name)
    await attempt(async () => {
      await withPinnedFolder(path, root, (folder) => removeFiles(folder, (inner) => moveUp(folder, inner)))
      await rmdir(path)
    })
  }
  return failures
}

/** Runs `work` on a held folder. Throws if another file system is mounted on it. */
async function withPinnedFolder(
  path: string,
  root: Pinned,
  work: (folder: Pinned) => Promise<void>,
): Promise<void> {
  const folder = await pin(path)
  try {
    if (!folder.isFolder) throw new Error('it was changed meanwhile')
    if (!isSameMount(folder, root)) throw new Error('a file system is mounted in it')
    await work(folder)
  } finally {
    await folder.close()
  }
}

const isUnshared = (file: Pinned, folder: InodeIdentity): boolean =>
  file.links === 1 && file.uid === folder.uid

async function takeFile(folder: Pinned, path: string): Promise<number | undefined> {
  const file = await pin(path)
  try {
    if (!file.isFile) return undefined
    assertTakeable(file, folder, path)
    if (isUnshared(file, folder)) await chmod(file.base, 0o600)
    else await replaceByCopy(file, path)
    return file.bytes
  } finally {
    await file.close()
  }
}

function assertTakeable(file: Pinned, folder: Pinned, path: string): void {
  if (!isSameMount(file, folder)) throw new ForeignFile(`${basename(path)} is a mount.`)
  if (file.links > 1 && file.uid !== folder.uid)
    throw new ForeignFile(`${basename(path)} is a hard link to a file of another user.`)
}

/**
 * Replaces a file by a copy. Uses a stream, because in later versions of Node.js `copyFile` gives the copy the owner of
 * the original.
 */
async function replaceByCopy(file: Pinned, path: string): Promise<void> {
  const copy = join(dirname(path), `.${randomBytes(8).toString('hex')}`)
  await pipeline(createReadStream(file.base), createWriteStream(copy, { flags: 'wx', mode: 0o600 }))
  await rename(copy, path)
}

async function openOwnFile(folder: Pinned, path: string): Promise<FileHandle> {
  const file = await pin(path)
  try {
    if (!file.isFile) throw new ForeignFile(`${basename(path)} is not a file.`)
    assertTakeable(file, folder, path)
    if (!isUnshared(file, folder)) throw new ForeignFile(`${basename(path)} was changed by another program.`)
    return await open(file.base, constants.O_RDWR)
  } finally {
    await file.close()
  }
}
