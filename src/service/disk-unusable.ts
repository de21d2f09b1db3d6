import { errorCode } from '../host/system-error.js'

const CODES =
  /^(SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|IOERR|LOCKED|NOTADB|READONLY)|DATABASE_UNAVAILABLE$|ENOSPC$|EDQUOT$|EROFS$)/

/** The database or the disk is locked, full, damaged or out of reach: the same may succeed later. */
export const isDiskUnusable = (error: unknown): boolean => CODES.test(errorCode(error) ?? '')
