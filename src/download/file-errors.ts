/** What the file system says, in words. */
import { messageOf, RushesError, type RushesErrorOptions } from '../errors.js'
import { errorCode } from '../host/directories.js'
import { printable } from '../protocol/text.js'

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'there is no permission to write there',
  EPERM: 'the system does not allow it',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file is too large for this file system',
  ENAMETOOLONG: 'the name is too long',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EEXIST: 'it exists',
  EISDIR: 'it is a folder',
  ENOTEMPTY: 'it is a folder',
  ENOENT: 'the folder is not there (any more)',
  ELOOP: 'links in the path lead in a circle',
  EIO: 'the disk reports an error',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open on this machine',
  EINVAL: 'the file system refuses this name',
}

export const inWords = (error: unknown): string => {
  const code = errorCode(error)
  // Some file systems, such as /proc, answer ENOENT to every attempt to make a folder.
  if (code === 'ENOENT' && (error as { syscall?: unknown }).syscall === 'mkdir')
    return 'its folder cannot be made'
  const words = code !== undefined && Object.hasOwn(WORDS, code) ? WORDS[code] : undefined
  return words ?? printable(messageOf(error))
}

export const failed = (message: string, options: RushesErrorOptions = {}): RushesError =>
  new RushesError('download_failed', message, options)

/** Runs `work`, whose system errors become a `download_failed` about `path`. */
export async function writing<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof RushesError || errorCode(error) === undefined) throw error
    throw failed(`could not write ${printable(path)}: ${inWords(error)}`, { cause: error })
  }
}
