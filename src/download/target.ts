/** Where the user wants the outputs, as data. */
import { sep } from 'node:path'
import { usageError } from '../errors.js'
import { checkPlaceholders } from './placeholders.js'

export type Target =
  /** The names of `-d` in this folder; the folder may hold placeholders, `.` is the current one. */
  | { readonly kind: 'folder'; readonly folder: string }
  /** A path, in which placeholders are filled in. */
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'stdout' }

/** Ends in a separator or in `.` or `..`: it can only be a folder, whether it exists or not. */
const NAMES_A_FOLDER = { '\\': /(^|[\\/])\.{0,2}$/, '/': /(^|\/)\.{0,2}$/ } as const

export interface TargetOptions {
  /** `-d` was given. */
  readonly download: boolean
  isFolder(path: string): boolean
  /** Of folders; on Windows both kinds of slash are. */
  readonly separator?: typeof sep
}

/** What `-o` and `-d` ask for; undefined when nothing is to be downloaded. Throws a usage error. */
export function parseTarget(
  output: string | undefined,
  { download, isFolder, separator = sep }: TargetOptions,
): Target | undefined {
  if (output === undefined) return download ? { kind: 'folder', folder: '.' } : undefined
  if (output === '') throw usageError('the output path is empty', 'Name a file or a folder: -o fox.mp4')
  if (output.includes('\0')) throw usageError('the output path holds a NUL character')
  if (output === '-') return { kind: 'stdout' }
  if (isFolder(output)) return { kind: 'folder', folder: output }
  checkPlaceholders(output)
  return NAMES_A_FOLDER[separator].test(output)
    ? { kind: 'folder', folder: output }
    : { kind: 'template', template: output }
}
