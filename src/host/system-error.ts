/**
 * Describes errors of the operating system and of SQLite. They have a code such as ENOENT, and they are not bugs of
 * rushes.
 */
import { messageOf } from '../errors.js'

export const errorCode = (error: unknown): string | undefined => textField(error, 'code')

export const isSystemError = (error: unknown): error is NodeJS.ErrnoException & { code: string } =>
  error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EBADF: 'the file is not open',
  EBUSY: 'the file is in use',
  EDQUOT: 'disk quota exceeded',
  EEXIST: 'the file exists',
  EFBIG: 'the file is too large for this file system',
  EINVAL: 'the file system does not accept this name',
  EIO: 'disk I/O error',
  EISDIR: 'is a directory',
  ELOOP: 'too many symbolic links',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'the name is too long',
  ENFILE: 'too many open files on this system',
  ENODEV: 'no such device',
  ENOENT: 'no such file',
  ENOEXEC: 'not an executable file',
  ENOMEM: 'out of memory',
  ENOSPC: 'no space left on the disk',
  ENOTDIR: 'a part of the path is a file, not a folder',
  ENOTEMPTY: 'the folder is not empty',
  ENOTSUP: 'the file system does not support this',
  ENXIO: 'no such device',
  EPERM: 'operation not permitted',
  EROFS: 'read-only file system',
  ETXTBSY: 'the file is in use',
  EXDEV: 'on another file system',
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'no such host',
  ETIMEDOUT: 'no answer',
  EADDRINUSE: 'the address is in use',
  EADDRNOTAVAIL: 'the address does not belong to this machine',
  SQLITE_FULL: 'no space left on the disk',
  SQLITE_READONLY: 'read-only file or folder',
  SQLITE_READONLY_DBMOVED: 'removed, replaced or overwritten while it was open',
  SQLITE_BUSY: 'locked by another process',
  SQLITE_CANTOPEN: 'the file or its folder cannot be opened',
  SQLITE_IOERR: 'disk I/O error',
  SQLITE_CORRUPT: 'the file is damaged',
  SQLITE_NOTADB: 'the file is damaged',
}

/** Shortens an extended SQLite code: SQLITE_IOERR_WRITE becomes SQLITE_IOERR. */
const basicCode = (code: string): string => /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code

function systemReason(thrown: unknown): string | undefined {
  const whole = errorCode(thrown) ?? ''
  const code = Object.hasOwn(WORDS, whole) ? whole : basicCode(whole)
  if (!Object.hasOwn(WORDS, code)) return undefined
  if (isCurrentFolderGone(thrown)) return 'the current folder no longer exists'
  // The parent is missing, or the file system (such as /proc) does not allow new directories.
  if (code === 'ENOENT' && textField(thrown, 'syscall') === 'mkdir') return 'the folder cannot be created'
  return WORDS[code]
}

/** Node reports it at the first use of a relative path, and when it starts a thread: before anything is sent. */
export const isCurrentFolderGone = (thrown: unknown): boolean =>
  errorCode(thrown) === 'ENOENT' && textField(thrown, 'syscall') === 'uv_cwd'

/** Whether the reader of a pipe has closed it. Windows reports EOF. */
export const isClosedPipe = (error: unknown): boolean => ['EPIPE', 'EOF'].includes(errorCode(error) ?? '')

/** Whether another process held the lock for longer than the timeout. */
export const isBusy = (error: unknown): boolean => /^SQLITE_BUSY/.test(errorCode(error) ?? '')

/** Describes an error in plain words, without a path: `no such file`. */
export const describeReason = (thrown: unknown): string => systemReason(thrown) ?? messageOf(thrown)

/**
 * Describes an error in plain words, with its path: `nofile.png: no such file`, `/root is a directory`. `path` is the
 * path as the user wrote it; default: the path in the error.
 */
export function describeError(thrown: unknown, path?: string): string {
  const reason = describeReason(thrown)
  const where = path ?? (systemReason(thrown) === undefined ? undefined : textField(thrown, 'path'))
  if (where === undefined) return reason
  return reason.startsWith('is ') ? `${where} ${reason}` : `${where}: ${reason}`
}

/** Returns a field of a thrown value, if it is text. */
export function textField(thrown: unknown, field: string): string | undefined {
  const value = (thrown as Readonly<Record<string, unknown>> | null | undefined)?.[field]
  return typeof value === 'string' ? value : undefined
}
