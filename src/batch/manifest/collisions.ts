/** Finds runs with the same name or file, and files where another run needs a folder. Pure. */
import { posix } from 'node:path'
import type { Kind } from '../../protocol/models.js'
import type { Origin } from './matrix.js'
import { createMatrixCollisions } from './matrix-collisions.js'
import type { Position, ReportProblem } from './position.js'

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

/** Extensions that a model of a kind is known to produce; another model may produce any. */
const EXTENSIONS: Readonly<Record<Kind, readonly string[]>> = {
  image: [
    'png',
    'jpg',
    'jpeg',
    'webp',
    'gif',
    'avif',
    'apng',
    'tif',
    'tiff',
    'bmp',
    'heic',
    'jxl',
    'svg',
    'exr',
    'bin',
  ],
  video: ['mp4', 'm4v', 'mov', 'webm', 'mkv', 'mpg', 'mpeg', 'avi', 'gif', 'bin'],
}

/** Whether a run whose extension is still open (`{ext}`) may produce a file with this extension (without its dot). */
export const mayBecome = (kind: Kind | undefined, extension: string): boolean =>
  kind === undefined ? extension !== '' : EXTENSIONS[kind].includes(extension.toLowerCase())

/** Some file systems ignore case and Unicode normalization. */
export const sameFileKey = (path: string): string => path.normalize('NFC').toLowerCase()

const OPEN_EXTENSION = /\.\{ext\}$/

type FileClaim = Pick<OutputClaim, 'realPath' | 'kind'>

/** `reserved`: paths that no output may have, such as the manifest, with a description of each. */
export function findCollisions(
  claims: readonly OutputClaim[],
  reserved: ReadonlyMap<string, string>,
  report: ReportProblem,
): void {
  const names = new Map<string, OutputClaim>()
  const inMatrices = createMatrixCollisions(report)
  const files = new Map<string, OutputClaim[]>()
  for (const claim of claims) {
    const namesake = names.get(claim.name)
    if (namesake === undefined) names.set(claim.name, claim)
    else if (claim.isNamed || namesake.isNamed) {
      if (!inMatrices.add('name', namesake, claim))
        claim.report(claim.at, `the name "${claim.name}" is already used in line ${namesake.at.line}`)
      // Equal outputs follow from equal names: report one problem.
      if (namesake.realPath === claim.realPath) continue
    }
    // An open extension may collide with any file of the same stem.
    const stem = stemKey(claim.realPath)
    const others = files.get(stem) ?? []
    const other = others.find((each) => areOneFile(each, claim))
    if (other !== undefined && !inMatrices.add('output', other, claim))
      claim.report(claim.outputAt, sharedMessage(claim, other))
    files.set(stem, [...others, claim])
    const what = reserved.get(sameFileKey(claim.realPath))
    if (what !== undefined) claim.report(claim.outputAt, `the output "${claim.output}" is ${what}`)
  }
  inMatrices.flush()
  findFoldersInTheWay(claims)
}

const sharedMessage = (claim: OutputClaim, other: OutputClaim): string =>
  `the output "${claim.output}" is already used in line ${other.at.line}${claim.output === other.output ? '' : ` ("${other.output}")`}`

/** Equal for paths that may become one file, once the extension of each is known. */
export const stemKey = (realPath: string): string =>
  sameFileKey(
    OPEN_EXTENSION.test(realPath)
      ? realPath.replace(OPEN_EXTENSION, '')
      : realPath.slice(0, realPath.length - posix.extname(realPath).length),
  )

/** Whether two outputs of the same stem may become one file. */
export function areOneFile(a: FileClaim, b: FileClaim): boolean {
  if (OPEN_EXTENSION.test(a.realPath) === OPEN_EXTENSION.test(b.realPath))
    return sameFileKey(a.realPath) === sameFileKey(b.realPath)
  const [open, closed] = OPEN_EXTENSION.test(a.realPath) ? [a, b] : [b, a]
  return mayBecome(open.kind, posix.extname(closed.realPath).slice(1))
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
