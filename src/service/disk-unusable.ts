import { errorCode } from '../host/system-error.js'

/** Of SQLite with its extensions, such as SQLITE_IOERR_WRITE; of PostgreSQL; and of a file system. */
const CODES = [
  /^SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|INTERRUPT|IOERR|LOCKED|NOMEM|NOTADB|PERM|PROTOCOL|READONLY)/,
  /^DATABASE_UNAVAILABLE$/,
  /^(EACCES|EDQUOT|EIO|EMFILE|ENFILE|ENODEV|ENOMEM|ENOSPC|ENOTCONN|ENXIO|EROFS|ESTALE)$/,
]

/** The database or the disk is locked, full, damaged or out of reach: the same may succeed later. */
export const isDiskUnusable = (error: unknown): boolean => {
  const code = errorCode(error) ?? ''
  return CODES.some((pattern) => pattern.test(code))
}
