/**
 * The target of outputs (`-o` and `-d`), and the names of their files. Pure. A name is decided before the download starts. The extension is not known yet, so the name
 * contains `{ext}` instead. So names depend only on the order of the outputs, not on which download ends first.
 */
import { sep } from 'node:path'
import { usageError } from '../errors.js'
import { sameFileKey } from '../host/file-system.js'
import {
  checkPlaceholders,
  fill,
  holds,
  numbered,
  safeName,
  safePart,
  unreserved,
} from '../protocol/output-names.js'
import { addTo } from '../protocol/parse.js'

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

/** An output, with the values of the placeholders in its name. */
export interface OutputToName {
  readonly runId: string
  /** `video`, `image`, …; default of `{kind}`: `model`. */
  readonly kind?: string | undefined
  /** Name of a batch row; default of `{name}`: the id. */
  readonly name?: string | undefined
}

type Separator = typeof sep

const COMPONENT = { '\\': /[^\\/]+/g, '/': /[^/]+/g } as const

/** Names outputs: one for a command, because `{index}` counts from 1 over all its names. */
export class Namer {
  readonly #target: Target
  readonly #separator: Separator
  /**
   * The next number to try for each used name. Without it, each of ten thousand outputs with the same name would try all
   * earlier numbers.
   */
  readonly #nextNumbers = new Map<string, number>()
  #index = 0

  constructor(target: Target, separator: Separator = sep) {
    this.#target = target
    this.#separator = separator
  }

  /**
   * Returns one path per output, which may contain `{ext}`. Pass all outputs of a run in one call. Later calls continue
   * the count and avoid all earlier names.
   */
  name(outputs: readonly OutputToName[]): readonly string[] {
    const byRun = new Map<string, OutputToName[]>()
    for (const output of outputs) addTo(byRun, output.runId, output)
    return outputs.map((output) => {
      this.#index += 1
      const ofRun = byRun.get(output.runId) ?? []
      const target = this.#target
      if (target.kind === 'stdout') return '-'
      if (target.kind === 'template') return this.#distinct(this.#filled(target.template, output))
      // With `-d`: `<id>.<ext>`, or `<id>-1.<ext>` if the run has several outputs.
      const number = ofRun.length > 1 ? `-${ofRun.indexOf(output) + 1}` : ''
      return this.#distinct(this.#filled(this.#inFolder(target.folder, `{id}${number}.{ext}`), output))
    })
  }

  /** Joins folder and name. Keeps the folder as the user wrote it, but omits `.`. */
  #inFolder(folder: string, name: string): string {
    if (folder === '.') return name
    return folder.endsWith('/') || folder.endsWith(this.#separator) ? folder + name : `${folder}/${name}`
  }

  #filled(template: string, { runId, kind = 'model', name }: OutputToName): string {
    const values = {
      id: safeName(runId),
      index: String(this.#index),
      kind: safePart(kind),
      name: name === undefined ? safeName(runId) : safePart(name),
    }
    return template.replace(COMPONENT[this.#separator], (component) => {
      const filled = fill(component, values)
      return filled === component ? component : unreserved(filled)
    })
  }

  /**
   * Makes a name distinct: the second output with the same name gets `-2` before its extension, the third `-3`. The
   * comparison ignores case, as some file systems do, and the extension: `fox.{ext}` gives `fox.png` and `fox-2.jpg`.
   */
  #distinct(path: string): string {
    const nextNumbers = this.#nextNumbers
    let free = path
    let number = nextNumbers.get(sameFileKey(path)) ?? 2
    while (nextNumbers.has(sameFileKey(free))) free = numbered(path, number++, this.#separator)
    nextNumbers.set(sameFileKey(path), number)
    if (free !== path) nextNumbers.set(sameFileKey(free), 2)
    return free
  }
}

export const awaitsExtension = (path: string): boolean => holds(path, 'ext')

export const withExtension = (path: string, extension: string): string =>
  fill(path, { ext: safePart(extension) })

/**
 * Returns the paths that are known before a run is paid for, so that an existing file can be refused first. Returns
 * none if the path depends on the id, which is the name too, or on the extension. `count`: of the runs.
 */
export function knownPaths(target: Target, count: number, kind: string | undefined): readonly string[] {
  if (target.kind !== 'template') return []
  const { template } = target
  if (holds(template, 'id') || holds(template, 'ext') || holds(template, 'name')) return []
  return new Namer(target).name(Array.from({ length: count }, (_, at) => ({ runId: String(at), kind })))
}
