/** The target of outputs (`-o` and `-d`), and the placeholders in its path. */
import { sep } from 'node:path'
import { usageError } from '../errors.js'
import { checkPlaceholders } from '../protocol/output-names.js'

export type Target =
  /** Files are named as with `-d`; the folder may contain placeholders. */
  | { readonly kind: 'folder'; readonly folder: string }
  /** A path with placeholders. */
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'stdout' }

/** Paths that name a folder even if it does not exist: they end in a separator, `.` or `..`. */
const NAMES_A_FOLDER = { '\\': /(^|[\\/])\.{0,2}$/, '/': /(^|\/)\.{0,2}$/ } as const

export const namesFolder = (path: string, separator = sep): boolean => NAMES_A_FOLDER[separator].test(path)

interface TargetOptions {
  /** Whether `-d` was given. */
  readonly download: boolean
  isFolder(path: string): boolean
  /** Path separator. On Windows, `/` separates folders too. */
  readonly separator?: typeof sep
}

/** Returns the target, or undefined without a download. Throws `usage`. */
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

/** Returns the target for a folder that the caller gives. Files are named as with `-d`. Throws `usage`. */
export function folderTarget(folder: string): Target {
  checkPath(folder)
  return { kind: 'folder', folder }
}

/**
 * Throws `usage` for an invalid path. An empty path is invalid because, with a file name appended, it would start at
 * the root of the file system.
 */
function checkPath(path: unknown, hint?: string): void {
  if (typeof path !== 'string') throw usageError(`The output path is not text, but ${typeof path}.`, hint)
  if (path === '') throw usageError('The output path is empty.', hint)
  if (path.includes('\0')) throw usageError('The output path contains a null character.')
}
