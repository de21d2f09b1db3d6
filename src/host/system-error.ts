import { messageOf } from '../errors.js'

/** Errors of the operating system: they have a code such as ENOENT, and are the machine's doing, not a bug. */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException & { code: string } =>
  error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'

const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: ': no such file',
  ENOTDIR: ': no such file',
  EISDIR: ' is a directory',
  EACCES: ': permission denied',
  EPERM: ': permission denied',
  ENAMETOOLONG: ': the name is too long',
  ELOOP: ': too many symbolic links',
  EIO: ': the disk reports an error',
}

/** Why a file cannot be read: `nofile.png: no such file`. */
export const describeReadError = (path: string, error: unknown): string =>
  isSystemError(error)
    ? `${path}${READ_ERRORS[error.code] ?? `: cannot be read (${error.code})`}`
    : `${path}: ${messageOf(error)}`
