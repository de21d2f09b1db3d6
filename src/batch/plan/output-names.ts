/**
 * The names of a run's outputs after its first one: `fox.png`, `fox-2.png`, `fox-3.png`. Where a row of the manifest has
 * that name, as with `count: 2`, it is `fox-1-2.png`. Pure, so that every batch finds the same names.
 */
import { posix } from 'node:path'
import { areOneFile, stemKey } from '../manifest/collisions.js'
import type { ManifestEntry } from '../manifest/manifest-entry.js'
import type { ManifestFolder } from '../manifest/manifest-folder.js'
import { numbered } from '../manifest/output-paths.js'

export interface OutputNames {
  /** The name of output `number`, counted from 1, relative to the manifest; may end in `.{ext}`. */
  nameOf(entry: ManifestEntry, number: number): string
  /** Whether a file that the lock file knows as this output may keep its name. */
  isNameOf(file: string, entry: ManifestEntry, number: number): boolean
}

interface Claim {
  readonly entry: ManifestEntry
  readonly realPath: string
}

export function createOutputNames(
  entries: readonly ManifestEntry[],
  { realPathOf }: Pick<ManifestFolder, 'realPathOf'>,
): OutputNames {
  /** By stem. Most runs have one output, and never need it. */
  let claims: Map<string, Claim[]> | undefined

  function claimsOf(stem: string): readonly Claim[] {
    claims ??= claimsByStem()
    return claims.get(stem) ?? []
  }

  function claimsByStem(): Map<string, Claim[]> {
    const byStem = new Map<string, Claim[]>()
    for (const entry of entries) {
      const realPath = realPathOf(entry.output)
      const stem = stemKey(realPath)
      const known = byStem.get(stem)
      if (known === undefined) byStem.set(stem, [{ entry, realPath }])
      else known.push({ entry, realPath })
    }
    return byStem
  }

  function isTaken(file: string, entry: ManifestEntry): boolean {
    const realPath = realPathOf(file)
    return claimsOf(stemKey(realPath)).some(
      (claim) =>
        claim.entry !== entry &&
        areOneFile({ realPath, kind: entry.kind }, { realPath: claim.realPath, kind: claim.entry.kind }),
    )
  }

  return {
    nameOf(entry, number) {
      if (number === 1) return entry.output
      let base = entry.output
      while (isTaken(base, entry) || isTaken(numbered(base, number), entry)) base = numbered(base, 1)
      return numbered(base, number)
    },
    isNameOf(file, entry, number) {
      const name = withoutExtension(file)
      const stem = withoutExtension(entry.output)
      const isNumbered = new RegExp(`^(-1)*-${number}$`).test(name.slice(stem.length))
      if (!name.startsWith(stem) || !isNumbered || isTaken(file, entry)) return false
      // Another row may have come whose output `number` has this name.
      const extension = posix.extname(file)
      const base = `${name.slice(0, -`-${number}`.length)}${extension}`
      const hasExtension =
        posix.extname(entry.output) === '.{ext}' || posix.extname(entry.output) === extension
      return hasExtension && (base === `${stem}${extension}` || !isTaken(base, entry))
    },
  }
}

const withoutExtension = (path: string): string => path.slice(0, path.length - posix.extname(path).length)
