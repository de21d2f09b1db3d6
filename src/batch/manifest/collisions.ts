/** Two runs must not have one name, one file, or a file where another needs a folder. Pure. */
import { posix } from 'node:path'
import type { Kind } from '../../protocol/models.js'
import type { Position, Report } from './position.js'

export interface Claimed {
  readonly name: string
  /** It was given, and does not follow from the output. */
  readonly isNamed: boolean
  readonly output: string
  /** Where the file really lies, links in its folders followed. */
  readonly place: string
  readonly kind: Kind | undefined
  readonly at: Position
  readonly outputAt: Position
}

/** What a model of a kind is known to make; another model may make anything. */
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

/** Whether a file of this extension, without its dot, may be what a run with an open extension makes. */
export const mayBecome = (kind: Kind | undefined, extension: string): boolean =>
  kind === undefined ? extension !== '' : EXTENSIONS[kind].includes(extension.toLowerCase())

/** As on file systems that tell neither case nor the ways of writing an accent apart. */
export const sameFileKey = (path: string): string => path.normalize('NFC').toLowerCase()

const OPEN = /\.\{ext\}$/

/** `reserved`: files that are no output, such as the manifest itself, by what they are. */
export function findCollisions(
  claims: readonly Claimed[],
  reserved: ReadonlyMap<string, string>,
  report: Report,
): void {
  const names = new Map<string, Claimed>()
  const files = new Map<string, Claimed[]>()
  const byKey = (path: string) => sameFileKey(path.replace(OPEN, ''))
  for (const claim of claims) {
    const namesake = names.get(claim.name)
    if (namesake === undefined) names.set(claim.name, claim)
    else if (claim.isNamed || namesake.isNamed) {
      report(claim.at, `the name "${claim.name}" is that of line ${namesake.at.line} too`)
      // That their outputs are the same then follows.
      if (namesake.place === claim.place) continue
    }
    // One that is open may meet a file of any extension, so files are looked for by their names without one.
    const stem = byKey(stemOf(claim.place))
    const others = files.get(stem) ?? []
    const other = others.find((each) => areOneFile(each, claim))
    if (other !== undefined) report(claim.outputAt, sayShared(claim, other))
    files.set(stem, [...others, claim])
    const what = reserved.get(sameFileKey(claim.place))
    if (what !== undefined) report(claim.outputAt, `the output "${claim.output}" is ${what}`)
  }
  findFoldersInTheWay(claims, report)
}

const sayShared = (claim: Claimed, other: Claimed): string =>
  `the output "${claim.output}" is that of line ${other.at.line} too${claim.output === other.output ? '' : ` ("${other.output}")`}`

const stemOf = (place: string): string =>
  OPEN.test(place) ? place : place.slice(0, place.length - posix.extname(place).length)

function areOneFile(a: Claimed, b: Claimed): boolean {
  if (OPEN.test(a.place) === OPEN.test(b.place)) return sameFileKey(a.place) === sameFileKey(b.place)
  const [open, closed] = OPEN.test(a.place) ? [a, b] : [b, a]
  return mayBecome(open.kind, posix.extname(closed.place).slice(1))
}

function findFoldersInTheWay(claims: readonly Claimed[], report: Report): void {
  const files = new Map(claims.map((claim) => [sameFileKey(claim.place), claim]))
  const seen = new Map<string, Claimed | undefined>()
  const fileAbove = (folder: string): Claimed | undefined => {
    if (!seen.has(folder)) {
      const above = posix.dirname(folder)
      seen.set(folder, files.get(folder) ?? (above === folder ? undefined : fileAbove(above)))
    }
    return seen.get(folder)
  }
  for (const claim of claims) {
    const above = fileAbove(posix.dirname(sameFileKey(claim.place)))
    if (above !== undefined)
      report(
        claim.outputAt,
        `the output "${claim.output}" lies in "${above.output}", which is the file of line ${above.at.line}`,
      )
  }
}
