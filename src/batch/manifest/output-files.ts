/** Local images that are the output of a row: read as files, they would change while the batch runs, and be paid for again. */
import { followLinks } from '../../host/directories.js'
import { areOneFile, type OutputClaim, stemKey } from './collisions.js'
import type { ManifestFolder } from './manifest-folder.js'

type Claim = Pick<OutputClaim, 'name' | 'realPath' | 'kind'> & {
  /** Of a further output: 2 or more. */
  readonly number?: number
}

export interface OutputFiles {
  /** What is wrong with an image at this absolute path, in a row with these names; undefined for other files. */
  problemOf(path: string, shown: string, names: readonly string[]): string | undefined
}

export function createOutputFiles(
  claims: readonly Claim[],
  { realPathOf }: Pick<ManifestFolder, 'realPathOf'>,
): OutputFiles {
  const byStem = new Map<string, Claim[]>()
  for (const claim of claims) {
    const stem = stemKey(claim.realPath)
    const known = byStem.get(stem)
    if (known === undefined) byStem.set(stem, [claim])
    else known.push(claim)
  }
  const seen = new Map<string, Claim | undefined>()

  /** A link reaches the file that it points to. */
  function find(path: string): Claim | undefined {
    const paths = [realPathOf(path), followLinks(path).replaceAll('\\', '/')]
    for (const realPath of paths)
      for (const claim of byStem.get(stemKey(realPath)) ?? [])
        if (claim.kind !== 'video' && areOneFile(claim, { realPath, kind: undefined })) return claim
    return undefined
  }

  return {
    problemOf(path, shown, names) {
      const claim = seen.has(path) ? seen.get(path) : find(path)
      seen.set(path, claim)
      if (claim === undefined) return undefined
      const { name, number } = claim
      const [article, suffix] = number === undefined ? ['the', ''] : ['an', `#${number}`]
      return names.includes(name)
        ? `"${shown}" is ${article} output of this row itself: give the row another ${number === undefined ? 'output' : 'image'}`
        : `"${shown}" is ${article} output of another row: write row:${name}${suffix}`
    },
  }
}
