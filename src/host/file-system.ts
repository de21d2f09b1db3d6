/** What file systems can do: it differs between systems, and between the disks of one system (exFAT, network folders). */
import { lstatSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { win32 } from 'node:path'
import { isDeviceName } from '../protocol/output-names.js'
import { printable } from '../protocol/text.js'
import { describeReason, errorCode } from './system-error.js'

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
