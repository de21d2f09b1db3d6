import { errorCode } from '../host/system-error.js'

const CODES = /^(SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|IOERR|LOCKED|NOTADB|READONLY)|ENOSPC$|EDQUOT$|EROFS$)/

/** The database or the disk is locked, full or damaged: what was asked had no effect, and may succeed later. */
export const isDiskUnusable = (error: unknown): boolean => CODES.test(errorCode(error) ?? '')
