/** The target of outputs (`-o` and `-d`), and the placeholders in its path. */
import { sep } from 'node:path'
import { usageError } from '../errors.js'
import { nearest, printable } from '../protocol/text.js'

export type Target =
  /** Files are named as with `-d`; the folder may contain placeholders. */
  | { readonly kind: 'folder'; readonly folder: string }
  /** A path with placeholders. */
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'stdout' }

/** A path that ends in a separator, `.` or `..` is a folder, whether it exists or not. */
const NAMES_A_FOLDER = { '\\': /(^|[\\/])\.{0,2}$/, '/': /(^|\/)\.{0,2}$/ } as const

export const namesFolder = (path: string, separator = sep): boolean => NAMES_A_FOLDER[separator].test(path)

interface TargetOptions {
  /** `-d` was given. */
  readonly download: boolean
  isFolder(path: string): boolean
  /** On Windows, `/` separates folders too. */
  readonly separator?: typeof sep
}

/** Undefined without a download. Throws `usage`. */
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

/** Target for a folder given by the caller. Files are named as with `-d`. Throws `usage`. */
export function folderTarget(folder: string): Target {
  checkPath(folder)
  return { kind: 'folder', folder }
}

/** Refuses an empty path: with a file name appended, it would begin at the root of the file system. */
function checkPath(path: unknown, hint?: string): void {
  if (typeof path !== 'string') throw usageError(`The output path is not text, but ${typeof path}.`, hint)
  if (path === '') throw usageError('The output path is empty.', hint)
  if (path.includes('\0')) throw usageError('The output path contains a NUL character.')
}

const PLACEHOLDERS = ['id', 'index', 'kind', 'name', 'ext'] as const
type OutputPlaceholder = (typeof PLACEHOLDERS)[number]

const KNOWN = new RegExp(`\\{(${PLACEHOLDERS.join('|')})\\}`, 'g')

/**
 * A word in braces is meant as a placeholder, so an unknown one is an error before the run is paid for, as are `{ id }`
 * and `{index:03}`. Other braces (`{}`, `{1}`, `{a,b}`) are legal in file names and stay.
 */
const PLACEHOLDER_LIKE = /\{\s*([A-Za-z][\w:.-]*)\s*\}/g

/** Throws `usage`, with the known placeholders. */
export function checkPlaceholders(template: string): void {
  for (const [whole, word = ''] of template.matchAll(PLACEHOLDER_LIKE)) {
    if (PLACEHOLDERS.some((known) => whole === `{${known}}`)) continue
    const meant = nearest(word.replace(/:.*/, ''), PLACEHOLDERS)
    throw usageError(
      `Unknown placeholder ${printable(whole)} in the output path.`,
      `Use ${PLACEHOLDERS.map((known) => `{${known}}`).join(' ')}.${meant ? ` Did you mean {${meant}}?` : ''}`,
    )
  }
}

export const holds = (template: string, placeholder: OutputPlaceholder): boolean =>
  template.includes(`{${placeholder}}`)

/** Replaces the placeholders that have a value. */
export const fill = (
  template: string,
  values: Readonly<Partial<Record<OutputPlaceholder, string>>>,
): string => template.replace(KNOWN, (whole, word: OutputPlaceholder) => values[word] ?? whole)
