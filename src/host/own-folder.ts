/**
 * A folder that this program created and that other programs write into. It is private (0700), so only programs of this
 * user and the administrator can change it. Before it is read or removed, it is compared with the folder that was
 * created; links in it are not followed.
 */
import { randomBytes } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { chmod, type FileHandle, lstat, mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { describeReason, errorCode } from './system-error.js'

/**
 * Another file or folder is at the path of the folder. The message does not contain the path, because it may reach
 * clients.
 */
export class FolderReplaced extends Error {
  override readonly name = 'FolderReplaced'
  readonly path: string
  /** Description of the found object: "a link", "another folder", "nothing". */
  readonly found: string

  constructor(path: string, found: string) {
    super(`There is ${found} in place of the folder.`)
    this.path = path
    this.found = found
  }
}

/** Something in the folder could not be removed. The message does not contain the path. */
export class FolderNotRemoved extends Error {
  override readonly name = 'FolderNotRemoved'
  readonly path: string

  constructor(path: string, cause: unknown) {
    super(`The folder could not be removed: ${describeReason(cause)}`, { cause })
    this.path = path
  }
}

/** Returns device and inode of a folder. Throws `FolderReplaced`. */
async function identityOf(path: string): Promise<string> {
  const found = await lstat(path, { bigint: true }).catch((error) => {
    if (errorCode(error) === 'ENOENT') throw new FolderReplaced(path, 'nothing')
    throw error
  })
  if (found.isSymbolicLink()) throw new FolderReplaced(path, 'a link')
  if (!found.isDirectory()) throw new FolderReplaced(path, 'a file')
  return `${found.dev}:${found.ino}`
}

export class OwnFolder {
  /** The path of the folder, for other programs. */
  readonly path: string
  readonly #identity: string

  constructor(path: string, identity: string) {
    this.path = path
    this.#identity = identity
  }

  /** Returns the path of an entry. Throws unless `name` is a plain name. */
  entry(name: string): string {
    if (basename(name) !== name || ['', '.', '..'].includes(name)) throw new Error('Not a file name.')
    return join(this.path, name)
  }

  /** Throws `FolderReplaced` unless the folder is still at its path. */
  async check(): Promise<void> {
    if ((await identityOf(this.path)) !== this.#identity)
      throw new FolderReplaced(this.path, 'another folder')
  }

  /** Returns the names of its entries. Throws `FolderReplaced`. */
  async names(): Promise<readonly string[]> {
    await this.check()
    return await readdir(this.path)
  }

  /**
   * Makes a plain file private (0600). A file that belongs to another user or has several names (hard links) is
   * replaced by a copy, because other programs could change it later. Returns its size in bytes, or undefined if it is
   * not a plain file.
   */
  async takeFile(name: string): Promise<number | undefined> {
    await this.check()
    const path = this.entry(name)
    const file = await lstat(path)
    if (!file.isFile()) return undefined
    // Undefined on Windows.
    const user = process.geteuid?.() ?? file.uid
    if (file.nlink === 1 && file.uid === user) await chmod(path, 0o600)
    else {
      const copy = this.entry(`.${randomBytes(8).toString('hex')}`)
      // Not `copyFile`, which in later versions of Node.js gives the copy the owner of the original.
      await pipeline(createReadStream(path), createWriteStream(copy, { flags: 'wx', mode: 0o600 }))
      await rename(copy, path)
    }
    return file.size
  }

  /** Opens a plain file for reading and writing. */
  async openFile(name: string): Promise<FileHandle> {
    await this.check()
    const path = this.entry(name)
    if (!(await lstat(path)).isFile()) throw new Error(`${name} is not a file.`)
    return await open(path, constants.O_RDWR | (constants.O_NOFOLLOW ?? 0))
  }

  /** Removes the folder with its contents, if it still exists. Throws `FolderReplaced` and `FolderNotRemoved`. */
  remove(): Promise<void> {
    return removeFolder(this.path, this.#identity)
  }
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
export const holdFolder = async (path: string): Promise<OwnFolder> =>
  new OwnFolder(path, await identityOf(path))

/**
 * Removes a folder and its contents. This or an earlier process of the program must have created it at `path`. Does
 * nothing if the path does not exist. Throws `FolderReplaced` unless it is a plain folder, and `FolderNotRemoved` if
 * something in it cannot be removed.
 */
export async function removeFolder(path: string, identity?: string): Promise<void> {
  try {
    const found = await identityOf(path)
    if (identity !== undefined && found !== identity) throw new FolderReplaced(path, 'another folder')
  } catch (error) {
    if (error instanceof FolderReplaced && error.found === 'nothing') return
    throw error
  }
  // Retries, because another program may still be changing it.
  await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 }).catch((error) => {
    throw new FolderNotRemoved(path, error)
  })
}
