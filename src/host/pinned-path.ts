/**
 * Holds a file or folder that was found at a path, so that a program which replaces the path is noticed or has no
 * effect. On Linux an open file descriptor holds it: the path `/proc/self/fd/<n>` always leads to the same file or
 * folder. On other systems device and inode are compared.
 */
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readFile, stat } from 'node:fs/promises'
import { errorCode } from './system-error.js'

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

export interface InodeIdentity {
  readonly dev: bigint
  readonly ino: bigint
  readonly uid: bigint
}

/** A held file or folder. Unless `follow` is set, a link is held itself, not its target. */
export interface Pinned extends InodeIdentity {
  /** Path that always leads to this file or folder on Linux; on other systems the original path. */
  readonly base: string
  readonly isFolder: boolean
  readonly isFile: boolean
  readonly isLink: boolean
  readonly mode: number
  readonly links: number
  readonly bytes: number
  /**
   * Mount id: a bind mount has the same device as the file system around it, but another mount id. Undefined on systems
   * without mount ids.
   */
  readonly mount: string | undefined
  /** Throws `FolderReplaced` if `base` no longer leads to this folder. Does nothing on Linux, where it always does. */
  verify(): Promise<void>
  close(): Promise<void>
}

/**
 * Linux's O_PATH, which Node.js does not define: needs no permission for the file itself, and does not open a device.
 */
const O_PATH = 0o10000000
const FD = '/proc/self/fd'

export async function pin(path: string, { follow = false } = {}): Promise<Pinned> {
  const handle = process.platform === 'linux' ? await openPath(path, follow) : undefined
  try {
    const stats = handle
      ? await handle.stat({ bigint: true })
      : await (follow ? stat : lstat)(path, { bigint: true })
    const { dev, ino, uid } = stats
    return {
      dev,
      ino,
      uid,
      // A closed handle has the number -1, so this path never leads to another file that got the same number later.
      get base() {
        return handle === undefined ? path : `${FD}/${handle.fd}`
      },
      isFolder: stats.isDirectory(),
      isFile: stats.isFile(),
      isLink: stats.isSymbolicLink(),
      mode: Number(stats.mode & 0o7777n),
      links: Number(stats.nlink),
      bytes: Number(stats.size),
      mount: handle && (await mountOf(handle)),
      verify: async () => {
        if (handle === undefined) await assertInPlace(path, { dev, ino, uid })
      },
      close: async () => handle?.close(),
    }
  } catch (error) {
    await handle?.close()
    throw error
  }
}

export const pinIfThere = (path: string): Promise<Pinned | undefined> =>
  pin(path).catch((error) => {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  })

/** Returns undefined if /proc is missing. */
async function openPath(path: string, follow: boolean): Promise<FileHandle | undefined> {
  const handle = await open(path, O_PATH | (follow ? 0 : constants.O_NOFOLLOW))
  const isReachable = await lstat(`${FD}/${handle.fd}`).then(
    () => true,
    () => false,
  )
  if (isReachable) return handle
  await handle.close()
  return undefined
}

const mountOf = ({ fd }: FileHandle): Promise<string | undefined> =>
  readFile(`/proc/self/fdinfo/${fd}`, 'utf8').then(
    (text) => /^mnt_id:\s*(\d+)/m.exec(text)?.[1],
    () => undefined,
  )

/**
 * Compares the mounts. Devices decide only if the mounts are unknown: in a container's overlay or a subvolume, files of
 * the same mount can have different devices.
 */
export const isSameMount = (one: Pinned, other: Pinned): boolean =>
  one.mount === undefined || other.mount === undefined ? one.dev === other.dev : one.mount === other.mount

const isSame = (one: InodeIdentity, other: InodeIdentity): boolean =>
  one.dev === other.dev && one.ino === other.ino && one.uid === other.uid

export async function assertInPlace(path: string, expected: InodeIdentity): Promise<void> {
  const found = await pinIfThere(path)
  await found?.close()
  if (!found?.isFolder || !isSame(found, expected)) throw new FolderReplaced(path, wordsFor(found, expected))
}

/** Describes the object that was found instead of the expected folder. */
export function wordsFor(found: Pinned | undefined, expected?: InodeIdentity): string {
  if (found === undefined) return 'nothing'
  if (!found.isFolder) return found.isLink ? 'a link' : 'a file'
  if (expected !== undefined && found.dev !== expected.dev) return 'a folder on another file system'
  if (expected !== undefined && found.uid !== expected.uid) return 'a folder of another user'
  return 'another folder'
}
