/** Errors of the operating system and of SQLite: the machine's doing, not a bug. They have a code such as ENOENT. */
import { messageOf } from '../errors.js'
import { errorCode } from './directories.js'

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
  ENOTDIR: 'a part of the path is not a directory',
  ENOTEMPTY: 'the directory is not empty',
  ENOTSUP: 'the file system does not support this',
  ENXIO: 'no such device',
  EPERM: 'operation not permitted',
  EROFS: 'read-only file system',
  ETXTBSY: 'the file is in use',
  EXDEV: 'on another file system',
  EADDRINUSE: 'the address is in use',
  EADDRNOTAVAIL: 'the address does not belong to this machine',
  SQLITE_FULL: 'no space left on the disk',
  SQLITE_READONLY: 'read-only file or directory',
  SQLITE_BUSY: 'locked by another process',
  SQLITE_CANTOPEN: 'the file or its directory cannot be opened',
  SQLITE_IOERR: 'disk I/O error',
  SQLITE_CORRUPT: 'the file is damaged',
  SQLITE_NOTADB: 'the file is damaged',
}

/** SQLite extends its codes: SQLITE_IOERR_WRITE. */
const basicCode = (code: string): string => /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code

/** Without the path, as `no such file`; undefined for any other error. */
export function systemReason(thrown: unknown): string | undefined {
  const code = basicCode(errorCode(thrown) ?? '')
  if (!Object.hasOwn(WORDS, code)) return undefined
  // A folder's parent is missing, or the file system (such as /proc) does not allow new folders.
  if (code === 'ENOENT' && (thrown as { syscall?: unknown }).syscall === 'mkdir')
    return 'the directory cannot be created'
  return WORDS[code]
}

/**
 * What was thrown, in plain words: `nofile.png: no such file`, `/root is a directory`. `path` is the name as the user gave
 * it; by default it is that of the error.
 */
export function describeError(thrown: unknown, path = pathOf(thrown)): string {
  const reason = systemReason(thrown)
  if (reason === undefined) return messageOf(thrown)
  if (path === undefined) return reason
  return reason.startsWith('is ') ? `${path} ${reason}` : `${path}: ${reason}`
}

function pathOf(thrown: unknown): string | undefined {
  const path = (thrown as { path?: unknown } | null | undefined)?.path
  return typeof path === 'string' ? path : undefined
}
