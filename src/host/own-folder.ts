/**
 * A folder that this program made and other programs may touch. What is found at its path later is not trusted: the folder
 * is compared by device, inode and owner before it is read or removed, and no link and no mount is followed out of it.
 *
 * On Linux the folder is held open, and its entries are reached through `/proc/self/fd/<n>`, a path that nobody can lead
 * elsewhere. Other systems have no such path: there a folder that is swapped between a comparison and the step after it is
 * not noticed.
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
  type Identity,
  isSameMount,
  type Pinned,
  pin,
  pinIfThere,
  wordsFor,
} from './pinned-path.js'
import { describeReason, errorCode } from './system-error.js'

export { FolderReplaced } from './pinned-path.js'

/** Something in the folder was left, such as a mount. The path is no part of the message. */
export class FolderNotRemoved extends Error {
  override readonly name = 'FolderNotRemoved'
  readonly path: string

  constructor(path: string, cause: unknown) {
    super(`The folder could not be removed: ${describeReason(cause)}`, { cause })
    this.path = path
  }
}

/** A file that must not be taken for one of the folder. */
export class ForeignFile extends Error {
  override readonly name = 'ForeignFile'
}

export interface OwnFolder {
  /** For other programs. */
  readonly path: string
  /**
   * The path of an entry, which leads into this very folder until it is closed. A link there is followed. Throws `ForeignFile` for
   * what is not a plain name.
   */
  entry(name: string): string
  /** Throws `FolderReplaced` unless the folder is still at its path. */
  check(): Promise<void>
  /** The names in it. Throws `FolderReplaced`. */
  names(): Promise<readonly string[]>
  /**
   * Makes a plain file private (0600), and a file of its own: one with further names (hard links) or of another user is replaced by a
   * copy, since it could be changed later. Its size in bytes; undefined for what is not a plain file. Throws `ForeignFile`.
   */
  takeFile(name: string): Promise<number | undefined>
  /** Opens a file that `takeFile` would leave as it is, for reading and writing. Throws `ForeignFile`. */
  openFile(name: string): Promise<FileHandle>
  /**
   * Removes it with all that is in it, and closes it; does nothing where it is gone. Throws `FolderReplaced` and
   * `FolderNotRemoved`.
   */
  remove(): Promise<void>
  /** Keeps the folder. */
  close(): Promise<void>
}

/** A new private folder in `parent`, whose name begins with `prefix`. */
export const makeOwnFolder = async (parent: string, prefix: string): Promise<OwnFolder> =>
  holdFolder(await mkdtemp(join(parent, prefix)))

/** A new private folder at `path`. Throws where something is there. */
export async function makeOwnFolderAt(path: string): Promise<OwnFolder> {
  await mkdir(path, { mode: 0o700 })
  return await holdFolder(path)
}

/** Takes an existing folder for one's own: call it before other programs know the folder. Throws `FolderReplaced`. */
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
 * Removes a folder that this program, or an earlier process of it, made at `path`, with all that is in it; does nothing where
 * nothing is there. Throws `FolderReplaced` for anything but a plain folder of this user (or of the owner of its parent) on the
 * file system of its parent, and `FolderNotRemoved`. A link in place of the parent is followed.
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

/** Undefined on Windows, where all files have the user 0. */
const ownUid = (): bigint | undefined => {
  const uid = process.geteuid?.()
  return uid === undefined ? undefined : BigInt(uid)
}

const isGone = async (path: string): Promise<boolean> => {
  const found = await pinIfThere(path)
  await found?.close()
  return found === undefined
}

/** Another program may still be changing a folder that is being emptied. */
const MAX_ROUNDS = 5

async function removePinned(path: string, pinned: Pinned): Promise<void> {
  for (let round = 1; ; round++) {
    const failures = await emptyFolder(pinned)
    await assertInPlace(path, pinned)
    try {
      // A folder that is not empty stays, and so does a link.
      return await rmdir(path)
    } catch (error) {
      if (round === MAX_ROUNDS) throw new FolderNotRemoved(path, failures[0] ?? error)
    }
  }
}

/**
 * Removes what is in a folder, as far as it can be removed; the errors of the rest. Folders in folders are moved up before they are
 * emptied, so that two open folders and short paths are enough at any depth.
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
    await withOwn(path, root, async ({ base, mode }) => {
      // A folder that is moved must be writable, since it names its parent.
      if ((mode & 0o700) !== 0o700) await chmod(base, 0o700).catch(() => {})
    })
    await rename(path, join(root.base, free))
    folders.push(free)
  }

  await attempt(() => removeFiles(root, (name) => void folders.push(name)))
  for (let name = folders.pop(); name !== undefined; name = folders.pop()) {
    const path = join(root.base, name)
    await attempt(async () => {
      await withOwn(path, root, (folder) => removeFiles(folder, (inner) => moveUp(folder, inner)))
      await rmdir(path)
    })
  }
  return failures
}

/** Throws for a folder on which another file system is mounted. */
async function withOwn(path: string, root: Pinned, work: (folder: Pinned) => Promise<void>): Promise<void> {
  const folder = await pin(path)
  try {
    if (!folder.isFolder) throw new Error('it was changed meanwhile')
    if (!isSameMount(folder, root)) throw new Error('a file system is mounted in it')
    await work(folder)
  } finally {
    await folder.close()
  }
}

const isAlone = (file: Pinned, folder: Identity): boolean => file.links === 1 && file.uid === folder.uid

async function takeFile(folder: Pinned, path: string): Promise<number | undefined> {
  const file = await pin(path)
  try {
    if (!file.isFile) return undefined
    assertTakeable(file, folder, path)
    if (isAlone(file, folder)) await chmod(file.base, 0o600)
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

/** By a stream: `copyFile` of later versions of Node.js gives the copy the owner of the file. */
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
    if (!isAlone(file, folder)) throw new ForeignFile(`${basename(path)} was changed by another program.`)
    return await open(file.base, constants.O_RDWR)
  } finally {
    await file.close()
  }
}
