/** Names and outputs of a run: fills in placeholders, expands `count`, and normalizes and resolves paths. */
import { basename, dirname, isAbsolute, join, posix, resolve, sep } from 'node:path'
import { RushesError } from '../../errors.js'
import { followLinks, isWithin } from '../../host/directories.js'
import { checkPlaceholders, fill, numbered, safePart, unreserved } from '../../protocol/output-names.js'
import type { ManifestRow } from './row.js'

export interface NamedOutput {
  /** In the Unicode form NFC: two forms of a name are one name. */
  readonly name: string
  readonly output: string
}

/**
 * Returns the name and output of each run that a row makes. If the run has neither name nor output, reports the problem and
 * returns an empty list.
 */
export function outputsOfRow(row: ManifestRow): readonly NamedOutput[] {
  if (row.name === undefined && row.output === undefined) {
    row.report('name or output is missing: one of them is needed to name the file')
    return []
  }
  const template = row.output ?? defaultOutput(row.name ?? '')
  const wrong = templateProblem(row, template)
  if (wrong !== undefined) row.report(wrong, 'output')
  if (wrong !== undefined) return []
  const kind = safePart(row.kind ?? 'model')
  const name = row.name === undefined ? undefined : safePart(row.name)
  const isNumbered = template.includes('{index}')
  return Array.from({ length: row.count }, (_, at) => {
    const values = { index: String(at + 1), kind, ...(name !== undefined && { name }) }
    const filled = posix.normalize(filledIn(template, values))
    const output = at === 0 || isNumbered ? filled : numbered(filled, at + 1)
    const own = (row.name ?? output.replace(/\.\{ext\}$/, '')).normalize()
    return { name: row.name === undefined || at === 0 ? own : `${own}-${at + 1}`, output }
  })
}

/** Derives the output from the name, which may contain folders. */
const defaultOutput = (name: string): string =>
  `${name
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .map((part) => (part === '..' ? part : unreserved(safePart(part))))
    .join('/')}.{ext}`

function filledIn(
  template: string,
  values: Readonly<Partial<Record<'index' | 'kind' | 'name', string>>>,
): string {
  return template.replace(/[^/]+/g, (component) => {
    const filled = fill(component, values)
    return filled === component ? component : unreserved(filled)
  })
}

function templateProblem(row: ManifestRow, template: string): string | undefined {
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
