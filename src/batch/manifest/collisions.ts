/**
 * Finds runs with the same name or file, files at the path of another run's folder, and reference images that are
 * outputs of runs.
 */
import { posix } from 'node:path'
import { followLinks } from '../../host/directories.js'
import { sameFileKey } from '../../host/file-system.js'
import { addTo } from '../../protocol/lists.js'
import type { Kind } from '../../protocol/models.js'
import type { ManifestFolder } from './output-paths.js'
import type { RowTemplate } from './sections.js'

/** A file that an output may become. */
export interface FileClaim {
  /** Absolute path of the file, with links in its folders resolved. */
  readonly realPath: string
  readonly kind: Kind | undefined
}

interface ImageClaim extends FileClaim {
  readonly name: string
  /** Number of the output. Undefined for the first one, else 2 or more. */
  readonly number?: number
}

export interface OutputClaim extends FileClaim {
  readonly name: string
  /** Whether the manifest contains the name. False for a name derived from the output. */
  readonly isNamed: boolean
  readonly output: string
  /** Undefined for a run without a matrix. */
  readonly template: RowTemplate | undefined
  readonly line: number
  /** Reports a problem of the run, or of one of its fields. */
  report(message: string, field?: 'name' | 'output'): void
}

/** `reserved`: paths that no output may have, such as the manifest, with a description of each. */
export function findCollisions(claims: readonly OutputClaim[], reserved: ReadonlyMap<string, string>): void {
  const names = new Map<string, OutputClaim>()
  const files = createFileIndex<OutputClaim>()
  for (const claim of claims) {
    const namesake = names.get(claim.name)
    if (namesake === undefined) names.set(claim.name, claim)
    else if (claim.isNamed || namesake.isNamed) {
      claim.report(`the name "${claim.name}" ${usedBy(namesake, claim)}`, 'name')
      // Equal names lead to equal outputs: report only the names.
      if (namesake.realPath === claim.realPath) continue
    }
    const other = files.find(claim)
    if (other !== undefined) claim.report(`the output "${claim.output}" ${usedBy(other, claim)}`, 'output')
    files.add(claim)
    const what = reserved.get(sameFileKey(claim.realPath))
    if (what !== undefined) claim.report(`the output "${claim.output}" is ${what}`, 'output')
  }
  findFoldersInTheWay(claims)
}

const usedBy = (other: OutputClaim, { template, output }: OutputClaim): string =>
  template !== undefined && other.template === template
    ? 'is the same for several combinations of the matrix: write more of its keys in it'
    : `is already used in line ${other.line}${output === other.output ? '' : ` ("${other.output}")`}`

function findFoldersInTheWay(claims: readonly OutputClaim[]): void {
  const files = new Map(claims.map((claim) => [sameFileKey(claim.realPath), claim]))
  const seen = new Map<string, OutputClaim | undefined>()
  const fileAbove = (folder: string): OutputClaim | undefined => {
    if (!seen.has(folder)) {
      const above = posix.dirname(folder)
      seen.set(folder, files.get(folder) ?? (above === folder ? undefined : fileAbove(above)))
    }
    return seen.get(folder)
  }
  for (const claim of claims) {
    const above = fileAbove(posix.dirname(sameFileKey(claim.realPath)))
    if (above !== undefined)
      claim.report(
        `the output "${claim.output}" is inside "${above.output}", but line ${above.line} writes a file of that name`,
        'output',
      )
  }
}

/**
 * Returns why a run with these names cannot use the image at an absolute path. Undefined if it can. The output of
 * another run cannot be used by its path: it would change while the batch runs, and the run would be created and paid
 * for again.
 */
export function outputImageProblems(
  claims: readonly ImageClaim[],
  { realPathOf }: ManifestFolder,
): (path: string, writtenPath: string, names: readonly string[]) => string | undefined {
  const files = createFileIndex(claims)
  const seen = new Map<string, ImageClaim | undefined>()
  const isImage = ({ kind }: ImageClaim) => kind !== 'video'
  const find = (realPath: string) => files.find({ realPath, kind: undefined }, isImage)
  return (path, writtenPath, names) => {
    // A link is compared by the file that it points to.
    if (!seen.has(path))
      seen.set(path, find(realPathOf(path)) ?? find(followLinks(path).replaceAll('\\', '/')))
    const claim = seen.get(path)
    if (claim === undefined) return undefined
    const { name, number } = claim
    const [article, suffix] = number === undefined ? ['the', ''] : ['an', `#${number}`]
    return names.includes(name)
      ? `"${writtenPath}" is ${article} output of this run itself: give the run another ` +
          `${number === undefined ? 'output' : 'image'}`
      : `"${writtenPath}" is ${article} output of another run: write row:${name}${suffix}`
  }
}

/** Extensions of the files that each kind of model produces. Other models may produce any extension. */
const EXTENSIONS: Readonly<Record<Kind, readonly string[]>> = {
  image: 'png jpg jpeg webp gif avif apng tif tiff bmp heic jxl svg exr bin'.split(' '),
  video: 'mp4 m4v mov webm mkv mpg mpeg avi gif bin'.split(' '),
}

/** Whether a run with an open extension (`{ext}`) may produce a file with this extension, given without its dot. */
export const mayBecome = (kind: Kind | undefined, extension: string): boolean =>
  kind === undefined ? extension !== '' : EXTENSIONS[kind].includes(extension.toLowerCase())

const OPEN_EXTENSION = /\.\{ext\}$/

export interface FileIndex<Claim> {
  add(claim: Claim): void
  find(file: FileClaim, isCandidate?: (claim: Claim) => boolean): Claim | undefined
}

/**
 * Finds the outputs that may become a file. Indexed by stem, because an open extension (`{ext}`) may become any
 * extension.
 */
export function createFileIndex<Claim extends FileClaim>(claims: readonly Claim[] = []): FileIndex<Claim> {
  const byStem = new Map<string, Claim[]>()
  const add = (claim: Claim): void => addTo(byStem, stemKey(claim.realPath), claim)
  for (const claim of claims) add(claim)
  return {
    add,
    find: (file, isCandidate = () => true) =>
      byStem.get(stemKey(file.realPath))?.find((each) => isCandidate(each) && areOneFile(each, file)),
  }
}

/** Also without an open extension. */
export const withoutExtension = (path: string): string =>
  path.slice(0, path.length - posix.extname(path).length)

/** Equal for paths that may become one file once their extensions are known. */
const stemKey = (realPath: string): string => sameFileKey(withoutExtension(realPath))

/** Whether two outputs of the same stem may become one file. */
function areOneFile(a: FileClaim, b: FileClaim): boolean {
  if (OPEN_EXTENSION.test(a.realPath) === OPEN_EXTENSION.test(b.realPath))
    return sameFileKey(a.realPath) === sameFileKey(b.realPath)
  const [open, closed] = OPEN_EXTENSION.test(a.realPath) ? [a, b] : [b, a]
  return mayBecome(open.kind, posix.extname(closed.realPath).slice(1))
}
