/**
 * What a file system has and can do: names, files and folders. It differs between systems, and between disks (exFAT, network
 * folders).
 */
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  statfsSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { link } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, posix, relative, sep, win32 } from 'node:path'
import { isDeviceName } from '../protocol/output-names.js'
import { printable } from '../protocol/text.js'
import { describeError, describeReason, errorCode } from './system-error.js'

/** Tests replace it: for a disk without hard links, and for a death directly before a file gets its name. */
export interface FileSystem {
  /** Creates a hard link. See `hasNoLinks` for its errors. */
  link(from: string, to: string): Promise<void>
}

export const systemFiles: FileSystem = { link }

/** Whether the mode of a file shows who can read it, and a folder can be flushed to disk. */
export const isPosix = process.platform !== 'win32'

/** Errors of file systems without hard links (FAT, exFAT, some network and container mounts). Windows reports EISDIR. */
const NO_LINKS = new Set([
  ...['EPERM', 'EISDIR', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'],
  ...['EMLINK', 'EXDEV', 'EINVAL', 'UNKNOWN'],
])

/** Whether a hard link failed because the file system has none. */
export const hasNoLinks = (error: unknown): boolean => NO_LINKS.has(errorCode(error) ?? '')

/**
 * Key of a path. Equal for paths that a file system may treat as one, since some ignore case and Unicode normalization.
 */
export const sameFileKey = (path: string): string => path.normalize('NFC').toLowerCase()

/** Whether there is a file, a folder or a link at the path, under this or another spelling of its name. */
export function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/**
 * Returns why no file can have this path, because of its names: `file names on Windows cannot contain "?"`. Undefined if
 * a file can.
 */
export const nameProblem = (path: string, platform = process.platform): string | undefined =>
  platform === 'win32' ? windowsNameProblem(path) : posixNameProblem(path)

/** Maximum length of a name: in bytes on common file systems, in characters on NTFS and exFAT. */
const MAX_NAME = 255
const TOO_LONG = describeReason({ code: 'ENAMETOOLONG' })

function posixNameProblem(path: string): string | undefined {
  return path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME) ? TOO_LONG : undefined
}

/** By table, because Windows opens a device, removes a dot at the end, and hides what follows a colon, without an error. */
function windowsNameProblem(path: string): string | undefined {
  const names = path.slice(win32.parse(path).root.length).split(/[\\/]/)
  return names.map((name) => (/^\.{0,2}$/.test(name) ? undefined : windowsReason(name))).find(Boolean)
}

function windowsReason(name: string): string | undefined {
  const [character] = /[<>:"|?*\u0000-\u001f]/.exec(name) ?? []
  if (character !== undefined)
    return `file names on Windows cannot contain ${character < ' ' ? 'control characters' : `"${character}"`}`
  if (isDeviceName(name)) return `Windows reserves the name "${printable(name)}" for a device`
  if (/[. ]$/.test(name)) return 'file names on Windows cannot end with a dot or a space'
  return name.length > MAX_NAME ? TOO_LONG : undefined
}

/** Returns whether `path` is a folder or a link to a folder. False if it cannot be read. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * Creates a folder and its parents. Node's `recursive` never ends on a file system that always reports ENOENT, such as
 * /proc.
 */
export function makeFolders(path: string, mode?: number): void {
  try {
    mkdirSync(path, mode)
  } catch (error) {
    if (errorCode(error) === 'EEXIST' && isFolder(path)) return
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    makeFolders(dirname(path), mode)
    try {
      mkdirSync(path, mode)
    } catch (again) {
      // Another process may have created it at the same moment.
      if (errorCode(again) !== 'EEXIST' || !isFolder(path)) throw again
    }
  }
}

/**
 * Returns why no file can be created in a folder, or undefined if one can. Creates a file and removes it again, because
 * permissions do not show network folders, access lists and the rights of root. Of a folder that does not exist yet, the
 * nearest parent is checked. An early check: the later write can still fail.
 */
export function reasonUnwritable(folder: string): string | undefined {
  try {
    // A current folder that was removed still looks like a folder.
    if (!isAbsolute(folder)) process.cwd()
  } catch (error) {
    return describeReason(error)
  }
  // Without the separator at the end, which makes a file look like a missing folder.
  for (let path = join(dirname(folder), basename(folder)); ; path = dirname(path)) {
    try {
      if (!statSync(path).isDirectory()) return `${path} is a file, not a folder`
      return reasonWithoutFileIn(path)
    } catch (error) {
      if (!NOT_THERE.has(errorCode(error) ?? '') || dirname(path) === path) return describeError(error, path)
    }
  }
}

const NOT_THERE = new Set(['ENOENT', 'ENOTDIR'])

/** Returns the nearest parent of a path that is a folder. */
export const nearestFolder = (path: string): string => {
  const parent = dirname(path)
  return parent === path || isFolder(parent) ? parent : nearestFolder(parent)
}

function reasonWithoutFileIn(folder: string): string | undefined {
  const path = join(folder, `.rushes-${process.pid}-${process.hrtime.bigint()}.part`)
  try {
    closeSync(openSync(path, 'wx', 0o600))
    unlinkSync(path)
    return undefined
  } catch (error) {
    // A file system such as /proc, which has no new files.
    if (errorCode(error) === 'ENOENT') return `${folder}: no file can be created there`
    return describeError(error, folder)
  }
}

/** Returns whether `path` is `folder` itself or inside it. Both must be absolute; links are not followed. */
export function isWithin(folder: string, path: string): boolean {
  const pathFromFolder = relative(folder, path)
  return pathFromFolder !== '..' && !pathFromFolder.startsWith(`..${sep}`) && !isAbsolute(pathFromFolder)
}

/**
 * Resolves all links of an absolute path. A missing part is treated as plain folders and a file that will be created.
 * `follow` resolves the parent folder; pass a function with a cache to resolve each folder once.
 */
export function followLinks(path: string, follow: (folder: string) => string = followLinks): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(follow(parent), basename(path))
  }
}

/**
 * A disk with less free space counts as full: SQLite reports some errors of a full disk as I/O errors, and small writes
 * may succeed while others fail.
 */
const MIN_FREE_BYTES = 1_048_576

/** Returns whether the disk of a folder is full; false if the system does not report it. */
export function isDiskFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < MIN_FREE_BYTES
  } catch {
    return false
  }
}

export interface Folders {
  readonly config: string
  readonly state: string
}

/**
 * Returns the folders for settings and state: XDG on Linux, `~/Library` on macOS, `%APPDATA%` and `%LOCALAPPDATA%` on
 * Windows. An XDG variable that is not an absolute path is ignored, as the XDG specification requires.
 */
export function platformFolders(
  name: string,
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
  askSystem: () => string = homedir,
): Folders {
  const { join, resolve } = platform === 'win32' ? win32 : posix
  const home = env.HOME || env.USERPROFILE || homeOf(askSystem)
  if (platform === 'darwin')
    return {
      config: join(home, 'Library', 'Preferences', name),
      state: join(home, 'Library', 'Application Support', name),
    }
  if (platform === 'win32')
    return {
      config: join(env.APPDATA || join(home, 'AppData', 'Roaming'), name),
      state: join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), name),
    }
  const xdg = (value: string | undefined, ...otherwise: string[]) =>
    value?.startsWith('/') ? value : join(home, ...otherwise)
  return {
    config: resolve(xdg(env.XDG_CONFIG_HOME, '.config'), name),
    state: resolve(xdg(env.XDG_STATE_HOME, '.local', 'state'), name),
  }
}

/** Node throws if the user id has no account. Container engines use `/` then, and so does this function. */
function homeOf(askSystem: () => string): string {
  try {
    return askSystem()
  } catch {
    return '/'
  }
}
