/** Names and outputs of the runs: fills in placeholders, expands `count`, and finds runs with the same name or file. */
import { basename, dirname, isAbsolute, join, posix, resolve, sep } from 'node:path'
import { followLinks, isWithin, sameFileKey } from '../../host/file-system.js'
import type { Kind } from '../../protocol/models.js'
import { fill, fillParts, numbered, safePart, unreserved } from '../../protocol/output-names.js'
import { addTo } from '../../protocol/parse.js'
import type { ManifestRow } from './row.js'

/** An output of a run. */
export interface RowOutput extends FileClaim {
  readonly kind: Kind
  readonly row: ManifestRow
  /** Name of the run, in the Unicode form NFC: two forms of a name are one name. */
  readonly name: string
  readonly output: string
}

/** A file that an output may become. */
export interface FileClaim {
  /** Absolute path of the file, with links in its folders resolved. */
  readonly realPath: string
  /** Of the run whose output it is. */
  readonly kind?: Kind
}

/** Returns each run that a row makes. If the row has no valid output, reports the problem and returns an empty list. */
export function outputsOfRow(row: ManifestRow, folder: ManifestFolder): readonly RowOutput[] {
  const written = row.output ?? defaultOutput(row.name)
  const problem = outputProblem(row.name, written)
  if (problem !== undefined) row.report(problem, ...(row.output === undefined ? [] : ['output']))
  if (written === undefined || problem !== undefined) return []
  const { kind } = row
  const names = row.name === undefined ? {} : { name: safePart(row.name) }
  return Array.from({ length: row.count }, (_, at) => {
    const values = { ...names, kind, index: String(at + 1) }
    const filled = posix.normalize(fillParts(written, (part) => fill(part, values)))
    const output = at === 0 || written.includes('{index}') ? filled : numbered(filled, at + 1)
    const own = (row.name ?? output.replace(/\.\{ext\}$/, '')).normalize()
    const name = row.name === undefined || at === 0 ? own : `${own}-${at + 1}`
    return { row, kind, name, output, realPath: folder.realPathOf(output) }
  })
}

/** Derives the output from the name, which may contain folders. */
const defaultOutput = (name: string | undefined): string | undefined =>
  name &&
  `${name
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .map((part) => (part === '..' ? part : unreserved(safePart(part))))
    .join('/')}.{ext}`

function outputProblem(name: string | undefined, output: string | undefined): string | undefined {
  if (output === undefined) return 'name or output is missing: one of them is needed to name the file'
  // A backslash would be part of the name on some systems, and a separator on others.
  if (output.includes('\\')) return 'output contains a backslash; separate folders with /'
  if (/(^|\/)\.{0,2}$/.test(output)) return 'output is a folder; add the file name'
  if (/[{}]/.test(output.replaceAll(/\{(name|kind|index)\}/g, 'x').replace(/(?<!^|\/)\.\{ext\}$/, '')))
    return 'output can contain {name}, {kind}, {index}, and {ext} as the extension'
  if (output.includes('{name}') && name === undefined)
    return 'output contains {name}, but the run has no name'
  return undefined
}

/** Resolves output paths. A manifest from an unknown source must not write outside its own folder, not even through a link. */
export class ManifestFolder {
  /** Absolute path. */
  readonly path: string
  readonly #real = new Map<string, string>()

  constructor(path: string) {
    this.path = path
  }

  /** Absolute path of a file, separated by `/`, with the links in its folders resolved. */
  realPathOf(output: string): string {
    const path = resolve(this.path, output)
    return join(this.#realFolder(dirname(path)), basename(path))
      .split(sep)
      .join('/')
  }

  isInside(output: string): boolean {
    // Refuse drive letters on every system: the manifest may be used on Windows.
    if (/^(\/|[A-Za-z]:)/.test(output) || isAbsolute(output)) return false
    const [root, path] = [this.#realFolder(this.path), resolve(this.realPathOf(output))]
    return path !== root && isWithin(root, path)
  }

  #realFolder(path: string): string {
    const real = this.#real.get(path) ?? followLinks(path, (above) => this.#realFolder(above))
    this.#real.set(path, real)
    return real
  }
}

/** Reports names and files that two runs have, and outputs outside the folder. */
export function checkOutputs(
  outputs: readonly RowOutput[],
  folder: ManifestFolder,
  { allowOutside, reserved }: { readonly allowOutside: boolean; readonly reserved: readonly string[] },
): void {
  const own = new Set(reserved.map((file) => sameFileKey(folder.realPathOf(resolve(file)))))
  const names = new Map<string, RowOutput>()
  const files = new FileIndex<RowOutput>([])
  for (const each of outputs) {
    const { row, name, output, realPath } = each
    const other = files.find(each)
    const namesake = names.get(name)
    files.add(each)
    names.set(name, namesake ?? each)
    if (!allowOutside && !folder.isInside(output))
      reportOutput(each, 'is outside the folder of the manifest (--allow-outside allows that)')
    if (own.has(sameFileKey(realPath))) reportOutput(each, 'is a file of the batch itself')
    // Equal names lead to equal outputs: report only the names.
    if (namesake !== undefined && (row.name ?? namesake.row.name) !== undefined)
      row.report(`the name "${name}" ${usedBy(namesake, each)}`, 'name')
    else if (other !== undefined) reportOutput(each, usedBy(other, each))
  }
  for (const each of outputs) {
    const above = fileAbove(each.realPath, files)
    if (above !== undefined)
      reportOutput(
        each,
        `is inside a folder that is the output of line ${above.row.line} ("${above.output}")`,
      )
  }
}

/** Finds the output that a folder of the path would have to be. */
function fileAbove(path: string, files: FileIndex<RowOutput>): RowOutput | undefined {
  const realPath = posix.dirname(path)
  return realPath === path ? undefined : (files.find({ realPath }) ?? fileAbove(realPath, files))
}

const reportOutput = ({ row, output }: RowOutput, problem: string): void =>
  row.report(`the output "${output}" ${problem}`, row.output === undefined ? 'name' : 'output')

const usedBy = (other: RowOutput, { row, output }: RowOutput): string =>
  other.row.path === row.path
    ? 'is the same for several combinations of the matrix: write more of its keys in it'
    : `is already used in line ${other.row.line}${output === other.output ? '' : ` ("${other.output}")`}`

/** Extensions of the files that each kind of model produces. */
const EXTENSIONS: Readonly<Record<Kind, readonly string[]>> = {
  image: 'png jpg jpeg webp gif avif apng tif tiff bmp heic jxl svg exr bin'.split(' '),
  video: 'mp4 m4v mov webm mkv mpg mpeg avi gif bin'.split(' '),
}

/** Whether a run with an open extension (`{ext}`) may produce a file with this extension, given without its dot. */
export const mayBecome = (kind: Kind, extension: string): boolean =>
  EXTENSIONS[kind].includes(extension.toLowerCase())

/** End of a name whose extension the first bytes of the output decide. */
export const OPEN = '.{ext}'

/** Finds the outputs that may become a file. Indexed by stem, because an open extension may become any extension. */
export class FileIndex<Claim extends FileClaim> {
  readonly #byStem = new Map<string, Claim[]>()

  constructor(claims: readonly Claim[]) {
    for (const claim of claims) this.add(claim)
  }

  add(claim: Claim): void {
    addTo(this.#byStem, stemKey(claim.realPath), claim)
  }

  find(file: FileClaim, isCandidate: (claim: Claim) => boolean = () => true): Claim | undefined {
    const claims = this.#byStem.get(stemKey(file.realPath))
    return claims?.find((each) => isCandidate(each) && areOneFile(each, file))
  }
}

/** Also without an open extension. */
export const withoutExtension = (path: string): string =>
  path.slice(0, path.length - posix.extname(path).length)

/** Equal for paths that may become one file once their extensions are known. */
const stemKey = (realPath: string): string => sameFileKey(withoutExtension(realPath))

/** Whether two outputs of the same stem may become one file. */
function areOneFile(a: FileClaim, b: FileClaim): boolean {
  if (a.realPath.endsWith(OPEN) === b.realPath.endsWith(OPEN))
    return sameFileKey(a.realPath) === sameFileKey(b.realPath)
  const [open, closed] = a.realPath.endsWith(OPEN) ? [a, b] : [b, a]
  return open.kind !== undefined && mayBecome(open.kind, posix.extname(closed.realPath).slice(1))
}
