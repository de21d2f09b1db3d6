/** Errors of the file system as `download_failed`, in plain words. */
import { RushesError, type RushesErrorOptions } from '../errors.js'
import { describeReason, errorCode } from '../host/system-error.js'
import { printable } from '../protocol/text.js'

/** Of a write: what is missing then is the directory. */
export const describeFileError = (error: unknown): string =>
  errorCode(error) === 'ENOENT' && (error as { syscall?: unknown }).syscall !== 'mkdir'
    ? 'the directory does not exist'
    : printable(describeReason(error))

export const downloadFailed = (message: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('download_failed', message, options)

/** Runs `work` and turns its system errors into `download_failed` for `path`. */
export async function withWriteErrors<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RushesError || errorCode(error) === undefined) throw error
    throw downloadFailed(`could not write ${printable(path)}: ${describeFileError(error)}`, { cause: error })
  }
}
