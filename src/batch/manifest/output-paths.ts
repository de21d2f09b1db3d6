/** Names and outputs of a run: fills in placeholders, expands `count`, and normalizes and resolves paths. */
import { basename, dirname, isAbsolute, join, posix, resolve, sep } from 'node:path'
import { RushesError } from '../../errors.js'
import { followLinks, isWithin } from '../../host/directories.js'
import type { ManifestRow } from './row.js'

/** Naming rules of the download, passed in by the caller. */
export interface Naming {
  /** Throws `usage` for an unknown placeholder. */
  checkPlaceholders(template: string): void
  /** Fills in the given placeholders and leaves the others. */
  fill(template: string, values: Readonly<Partial<Record<'index' | 'kind' | 'name' | 'ext', string>>>): string
  /** Makes a text safe as part of a file name. */
  safePart(text: string): string
  /** Changes a file name that Windows reserves for a device. */
  unreserved(name: string): string
}

export interface NamedOutput {
  /** In the Unicode form NFC: two forms of a name are one name. */
  readonly name: string
  /** Number of the run among those of `count`, from 1. */
  readonly variant: number
  readonly output: string
}

/**
 * Returns the name and output of each run that a row makes. If the run has neither name nor output, reports the problem and
 * returns an empty list.
 */
export function outputsOfRow(row: ManifestRow, naming: Naming): readonly NamedOutput[] {
  if (row.name === undefined && row.output === undefined) {
    row.report('name or output is missing: one of them is needed to name the file')
    return []
  }
  const template = row.output ?? defaultOutput(row.name ?? '', naming)
  const wrong = templateProblem(row, template, naming)
  if (wrong !== undefined) row.report(wrong, 'output')
  if (wrong !== undefined) return []
  const kind = naming.safePart(row.kind ?? 'model')
  const name = row.name === undefined ? undefined : naming.safePart(row.name)
  const isNumbered = template.includes('{index}')
  return Array.from({ length: row.count }, (_, at) => {
    const values = { index: String(at + 1), kind, ...(name !== undefined && { name }) }
    const filled = posix.normalize(filledIn(template, values, naming))
    const output = at === 0 || isNumbered ? filled : numbered(filled, at + 1)
    const own = (row.name ?? output.replace(/\.\{ext\}$/, '')).normalize()
    return { name: row.name === undefined || at === 0 ? own : `${own}-${at + 1}`, variant: at + 1, output }
  })
}

/** Derives the output from the name, which may contain folders. */
const defaultOutput = (name: string, { safePart, unreserved }: Naming): string =>
  `${name
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .map((part) => (part === '..' ? part : unreserved(safePart(part))))
    .join('/')}.{ext}`

function filledIn(
  template: string,
  values: Readonly<Partial<Record<'index' | 'kind' | 'name', string>>>,
  { fill, unreserved }: Naming,
): string {
  return template.replace(/[^/]+/g, (component) => {
    const filled = fill(component, values)
    return filled === component ? component : unreserved(filled)
  })
}

/** Adds a number to a file name: `fox.png`, `fox-2.png`. The same names as those of `rushes run`. */
export const numbered = (path: string, number: number): string => {
  const { dir, name, ext } = posix.parse(path)
  return posix.join(dir, `${name}-${number}${ext}`)
}

function templateProblem(
  row: ManifestRow,
  template: string,
  { checkPlaceholders }: Naming,
): string | undefined {
  // A backslash would be part of the name on some systems, and a separator on others.
  if (template.includes('\\')) return 'output contains a backslash; separate folders with /'
  if (/(^|\/)\.{0,2}$/.test(template)) return 'output is a folder; add the file name'
  if (template.includes('{id}')) return 'output contains {id}, which is not known before the run is created'
  if (template.includes('{name}') && row.name === undefined)
    return 'output contains {name}, but the run has no name'
  if (/\{ext\}(?!$)|(^|[^.]|(^|\/)\.)\{ext\}/.test(template))
    return 'output can contain {ext} only as the extension: fox.{ext}'
  try {
    checkPlaceholders(template)
    return undefined
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    return [error.message, error.hint].filter(Boolean).join(' ')
  }
}

/**
 * Resolves output paths. A manifest from an unknown source must not write outside its own folder, not even through a
 * link.
 */
export interface ManifestFolder {
  /** Absolute path of the folder. */
  readonly folder: string
  /** Absolute path of a file, separated by `/`, with the links in its folders resolved. */
  realPathOf(output: string): string
  isInside(output: string): boolean
}

export function createManifestFolder(folder: string): ManifestFolder {
  const seen = new Map<string, string>()
  const real = (path: string): string => {
    const known = seen.get(path)
    if (known !== undefined) return known
    const found = followLinks(path, real)
    seen.set(path, found)
    return found
  }
  const realPathOf = (output: string): string => {
    const path = resolve(folder, output)
    return join(real(dirname(path)), basename(path))
      .split(sep)
      .join('/')
  }
  return {
    folder,
    realPathOf,
    isInside(output) {
      // Refuse drive letters on every system: the manifest may be used on Windows.
      if (output.startsWith('/') || /^[A-Za-z]:/.test(output) || isAbsolute(output)) return false
      const [root, path] = [real(folder), realPathOf(output)]
      return resolve(path) !== root && isWithin(root, resolve(path))
    },
  }
}
