/** Finds runs with the same name or file, files where another run needs a folder, and images that are outputs of rows. */
import { posix } from 'node:path'
import { followLinks } from '../../host/directories.js'
import type { Kind } from '../../protocol/models.js'
import { namedBy } from './combinations.js'
import { describe, type Origin, type RowTemplate } from './matrix.js'
import type { Node, Position, ReportProblem } from './nodes.js'
import type { ManifestFolder } from './output-paths.js'

export interface OutputClaim {
  readonly name: string
  /** The name was given in the manifest and not derived from the output. */
  readonly isNamed: boolean
  readonly output: string
  /** Absolute path of the file, with links in its folders resolved. */
  readonly realPath: string
  readonly kind: Kind | undefined
  readonly origin: Origin | undefined
  /** Reports a problem of this row. */
  readonly report: ReportProblem
  readonly at: Position
  readonly nameAt: Position
  readonly outputAt: Position
}

/** `reserved`: paths that no output may have, such as the manifest, with a description of each. */
export function findCollisions(
  claims: readonly OutputClaim[],
  reserved: ReadonlyMap<string, string>,
  report: ReportProblem,
): void {
  const names = new Map<string, OutputClaim>()
  const files = createFileIndex<OutputClaim>()
  const inMatrices = new Map<string, MatrixCollision>()
  const addInMatrix = (what: 'name' | 'output', first: OutputClaim, second: OutputClaim): boolean => {
    const template = second.origin?.template
    if (template === undefined || first.origin?.template !== template) return false
    const id = `${what} ${second.at.line}:${second.at.column}`
    const collision = inMatrices.get(id) ?? { what, template, first, second, keys: new Set<string>() }
    inMatrices.set(id, collision)
    for (const [key, value] of second.origin?.combination ?? [])
      if (first.origin.combination.get(key) !== value) collision.keys.add(key)
    return true
  }
  for (const claim of claims) {
    const namesake = names.get(claim.name)
    if (namesake === undefined) names.set(claim.name, claim)
    else if (claim.isNamed || namesake.isNamed) {
      if (!addInMatrix('name', namesake, claim))
        claim.report(claim.at, `the name "${claim.name}" is already used in line ${namesake.at.line}`)
      // Equal outputs follow from equal names: report one problem.
      if (namesake.realPath === claim.realPath) continue
    }
    const other = files.find(claim)
    if (other !== undefined && !addInMatrix('output', other, claim)) {
      const shown = claim.output === other.output ? '' : ` ("${other.output}")`
      claim.report(
        claim.outputAt,
        `the output "${claim.output}" is already used in line ${other.at.line}${shown}`,
      )
    }
    files.add(claim)
    const what = reserved.get(sameFileKey(claim.realPath))
    if (what !== undefined) claim.report(claim.outputAt, `the output "${claim.output}" is ${what}`)
  }
  for (const each of inMatrices.values())
    report(each.what === 'name' ? each.second.nameAt : each.second.outputAt, collisionMessage(each))
  findFoldersInTheWay(claims)
}

/** Combinations of one matrix with the same name or output: one problem for the row. */
interface MatrixCollision {
  readonly what: 'name' | 'output'
  readonly template: RowTemplate
  readonly first: OutputClaim
  readonly second: OutputClaim
  /** Keys whose values differ between any two that collide. */
  readonly keys: Set<string>
}

/** With the placeholders to add, or two of the combinations if no placeholder can tell them apart. */
function collisionMessage({ what, template, first, second, keys }: MatrixCollision): string {
  // An output that is not given comes from the name.
  const field = what === 'output' && template.output !== undefined ? 'output' : 'name'
  const written = template[field] ?? ''
  const placeholders = [...(second.origin?.combination ?? [])].flatMap(([key, value]) => {
    const isUsed = written.includes(`{${key}}`) || written.includes(`{${key}.`)
    return keys.has(key) && !isUsed && value.type !== 'list' ? [placeholderOf(key, value)] : []
  })
  const text = second[what]
  if (placeholders.length > 0)
    return `the ${what} "${text}" is the same for several combinations: add ${placeholders.join(' and ')} to ${field}`
  const [one, other] = [first, second].map(({ origin }) =>
    origin ? `(${describe(origin.combination)})` : '',
  )
  return `the ${what} "${text}" is the same for ${one} and ${other}`
}

function placeholderOf(key: string, value: Node): string {
  const [part] = value.type === 'fields' && namedBy(value) === undefined ? value.fields.keys() : []
  return part === undefined ? `{${key}}` : `{${key}.${part}}`
}

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
        claim.outputAt,
        `the output "${claim.output}" is inside "${above.output}", but line ${above.at.line} writes a file of that name`,
      )
  }
}

type ImageClaim = Pick<OutputClaim, 'name' | 'realPath' | 'kind'> & {
  /** Of a further output: 2 or more. */
  readonly number?: number
}

/**
 * Why the image at an absolute path cannot be used in a row with these names: it is the output of a row, would change while
 * the batch runs, and be paid for again. Undefined for other files.
 */
export function outputImageProblems(
  claims: readonly ImageClaim[],
  { realPathOf }: Pick<ManifestFolder, 'realPathOf'>,
): (path: string, shown: string, names: readonly string[]) => string | undefined {
  const files = createFileIndex(claims)
  const seen = new Map<string, ImageClaim | undefined>()
  const isImage = ({ kind }: ImageClaim) => kind !== 'video'
  const find = (realPath: string) => files.find({ realPath, kind: undefined }, isImage)
  return (path, shown, names) => {
    // A link reaches the file that it points to.
    if (!seen.has(path))
      seen.set(path, find(realPathOf(path)) ?? find(followLinks(path).replaceAll('\\', '/')))
    const claim = seen.get(path)
    if (claim === undefined) return undefined
    const { name, number } = claim
    const [article, suffix] = number === undefined ? ['the', ''] : ['an', `#${number}`]
    return names.includes(name)
      ? `"${shown}" is ${article} output of this row itself: give the row another ${number === undefined ? 'output' : 'image'}`
      : `"${shown}" is ${article} output of another row: write row:${name}${suffix}`
  }
}

/** Extensions that a model of a kind is known to produce; another model may produce any. */
const EXTENSIONS: Readonly<Record<Kind, readonly string[]>> = {
  image: 'png jpg jpeg webp gif avif apng tif tiff bmp heic jxl svg exr bin'.split(' '),
  video: 'mp4 m4v mov webm mkv mpg mpeg avi gif bin'.split(' '),
}

/** Whether a run whose extension is still open (`{ext}`) may produce a file with this extension (without its dot). */
export const mayBecome = (kind: Kind | undefined, extension: string): boolean =>
  kind === undefined ? extension !== '' : EXTENSIONS[kind].includes(extension.toLowerCase())

/** Some file systems ignore case and Unicode normalization. */
export const sameFileKey = (path: string): string => path.normalize('NFC').toLowerCase()

const OPEN_EXTENSION = /\.\{ext\}$/

type FileClaim = Pick<OutputClaim, 'realPath' | 'kind'>

/** Finds the claim of a file by its stem: an open extension may become any file of the same stem. */
export function createFileIndex<Claim extends FileClaim>(claims: readonly Claim[] = []) {
  const byStem = new Map<string, Claim[]>()
  const add = (claim: Claim): void => {
    const stem = stemKey(claim.realPath)
    const known = byStem.get(stem)
    if (known === undefined) byStem.set(stem, [claim])
    else known.push(claim)
  }
  for (const claim of claims) add(claim)
  return {
    add,
    find: (file: FileClaim, isCandidate: (claim: Claim) => boolean = () => true): Claim | undefined =>
      byStem.get(stemKey(file.realPath))?.find((each) => isCandidate(each) && areOneFile(each, file)),
  }
}

/** Equal for paths that may become one file, once the extension of each is known. */
const stemKey = (realPath: string): string =>
  sameFileKey(
    OPEN_EXTENSION.test(realPath)
      ? realPath.replace(OPEN_EXTENSION, '')
      : realPath.slice(0, realPath.length - posix.extname(realPath).length),
  )

/** Whether two outputs of the same stem may become one file. */
function areOneFile(a: FileClaim, b: FileClaim): boolean {
  if (OPEN_EXTENSION.test(a.realPath) === OPEN_EXTENSION.test(b.realPath))
    return sameFileKey(a.realPath) === sameFileKey(b.realPath)
  const [open, closed] = OPEN_EXTENSION.test(a.realPath) ? [a, b] : [b, a]
  return mayBecome(open.kind, posix.extname(closed.realPath).slice(1))
}
