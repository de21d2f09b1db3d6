/** Where the outputs go: `-o` and `-d`. */
import { sep } from 'node:path'
import { usageError } from '../errors.js'
import { checkPlaceholders } from './placeholders.js'

export type Target =
  /** Files are named as with `-d`; the folder may contain placeholders. */
  | { readonly kind: 'folder'; readonly folder: string }
  /** A path with placeholders. */
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'stdout' }

/** Ends in a separator, `.` or `..`: a folder, whether it exists or not. */
const NAMES_A_FOLDER = { '\\': /(^|[\\/])\.{0,2}$/, '/': /(^|\/)\.{0,2}$/ } as const

export const namesFolder = (path: string, separator = sep): boolean => NAMES_A_FOLDER[separator].test(path)

export interface TargetOptions {
  /** `-d` was given. */
  readonly download: boolean
  isFolder(path: string): boolean
  /** On Windows, `/` separates folders too. */
  readonly separator?: typeof sep
}

/** Undefined when nothing is to be downloaded. Throws `usage`. */
export function parseTarget(
  output: string | undefined,
  { download, isFolder, separator = sep }: TargetOptions,
): Target | undefined {
  if (output === undefined) return download ? { kind: 'folder', folder: '.' } : undefined
  checkPath(output, 'Give a file or a folder: -o fox.mp4')
  if (output === '-') return { kind: 'stdout' }
  if (isFolder(output)) return { kind: 'folder', folder: output }
  checkPlaceholders(output)
  return namesFolder(output, separator)
    ? { kind: 'folder', folder: output }
    : { kind: 'template', template: output }
}

/** A folder of the caller, in which files are named as with `-d`. Throws `usage`. */
export function folderTarget(folder: string): Target {
  checkPath(folder)
  return { kind: 'folder', folder }
}

/** In an empty folder, a name would begin at the root of the file system. */
function checkPath(path: unknown, hint?: string): void {
  if (typeof path !== 'string') throw usageError(`The output path is not text, but ${typeof path}.`, hint)
  if (path === '') throw usageError('The output path is empty.', hint)
  if (path.includes('\0')) throw usageError('The output path contains a NUL character.')
}
