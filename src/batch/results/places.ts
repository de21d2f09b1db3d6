/**
 * Chooses the paths of a run's outputs. Checks all of them before the first download, and each one again directly before
 * its file is replaced: hours may have passed since the plan was made.
 */
import { statSync } from 'node:fs'
import { posix, relative, resolve, sep } from 'node:path'
import { RushesError } from '../../errors.js'
import { sha256OfFile } from '../../host/files.js'
import type { Destination, DownloadedFile } from '../../protocol/media.js'
import { numbered } from '../../protocol/output-names.js'
import { type LockedOutput, outputsOf } from '../lock/lock.js'
import { statOfLink } from '../plan/disk.js'
import {
  type Disk,
  type FileFact,
  isInPlace,
  isReplaceable,
  type Plan,
  type PlannedOutput,
} from '../plan/index.js'
import type { ActiveStep } from './rows.js'

/** Path of an output. */
export interface Place {
  /** Absolute path. May end in `.{ext}`. */
  readonly path: string
  /** Hash of the file that existed when the plan was made, and that may be replaced. */
  readonly replaces: string | undefined
  /** The existing file, if the output needs no download. */
  readonly inPlace: DownloadedFile | undefined
}

export interface PlacesOptions {
  /** URLs of the outputs. For a new run their number is known only now. */
  readonly urls: readonly string[]
  readonly disk: Disk
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Command that continues the batch and pays for no run again. */
  readonly continuation: string
}

/**
 * Returns the place of each output. Throws `download_failed` if an output that was not in the plan would replace a
 * file.
 */
export async function placesFor(
  step: ActiveStep,
  { urls, disk, folder, continuation }: PlacesOptions,
): Promise<readonly Place[]> {
  const { entry, locked, outputs: planned, flags } = step
  const isMore = urls.length > planned.length
  const found = isMore ? (await disk.again().lookAt(entry, locked, urls.length)).slice(planned.length) : []
  const known = knownOutputs(step)
  if (known.length === 0)
    for (const each of found)
      if (placedFile(step, resolve(folder, each.file), each.fact) === undefined)
        refuseFile(each, flags.overwrite, continuation)
  return [...planned.slice(0, urls.length), ...found].map(({ file, name, fact }, at): Place => {
    const path = resolve(folder, file)
    const output = known[at] ?? placedFile(step, path, fact)
    // Keep the name used by the download: leftovers of a killed batch under that name are removed.
    if (output !== undefined && isInPlace(fact, output.sha256))
      return {
        path: resolve(folder, name),
        replaces: undefined,
        inPlace: { ...output, url: urls[at] ?? output.url, path },
      }
    // The plan checked only the files that it knew.
    const isChecked = at < planned.length || isReplaceable(fact)
    const replaces = fact.is === 'file' && isChecked ? fact.sha256 : undefined
    return { path, replaces, inPlace: undefined }
  })
}

/** Returns the outputs in the lock file if the run is downloaded again. Empty for a new run. */
function knownOutputs({ action, locked }: ActiveStep): readonly LockedOutput[] {
  const isAgain = action.do === 'download' && action.why !== 'unfinished' && action.run === locked?.run
  return isAgain ? outputsOf(locked) : []
}

/** Returns the file that a killed batch had already given its name. */
const placedFile = ({ flight }: ActiveStep, path: string, fact: FileFact): DownloadedFile | undefined =>
  flight?.files.findLast((each) => each.path === path && isInPlace(fact, each.sha256))

function refuseFile({ file, fact }: PlannedOutput, overwrites: boolean, continuation: string): void {
  const isForeign = fact.is === 'file' && fact.known === undefined
  if (fact.is === 'missing' || isReplaceable(fact) || (overwrites && isForeign)) return
  throw new RushesError('download_failed', `${file} already exists, and is not a file of this run.`, {
    hint: `Move it away, or replace it with --overwrite. The run is paid for: ${continuation} downloads it then.`,
  })
}

/**
 * Returns the final path of a complete file. Call it directly before the move. If the file at the place of the output
 * is not the one that the plan allows to replace, it is `kept`, and the result gets the next free name beside it.
 */
export async function destinationOf(
  { path, sha256 }: DownloadedFile,
  place: Place | undefined,
  overwrites: boolean,
  plan: Plan,
  folder: string,
): Promise<Destination & { readonly kept?: string }> {
  if (overwrites) return { path, mayReplace: true }
  const found = statOfLink(path)
  // A folder or a device is never replaced: the move fails, and names it.
  if (found === undefined || !(found.isFile() || found.isSymbolicLink())) return { path, mayReplace: false }
  const present = await unchangedHash(path)
  if (present !== undefined && [place?.replaces, sha256].includes(present)) return { path, mayReplace: true }
  return { path: freeNameBeside(path, plan, folder), mayReplace: false, kept: path }
}

/** Returns the error for files that were kept, by the path of the result beside each one. */
export function keptError(
  kept: ReadonlyMap<string, string>,
  folder: string,
  continuation: string,
): RushesError | undefined {
  const names = [...kept].map(([result, file]) => [relative(folder, result), relative(folder, file)] as const)
  const [first] = names
  if (first === undefined) return undefined
  const [results, files] = [
    names.map(([result]) => result).join(', '),
    names.map(([, file]) => file).join(', '),
  ]
  return new RushesError(
    'download_failed',
    `${files} changed while the run was rendering, and ${names.length === 1 ? 'was' : 'were'} kept. The result is in ${results}.`,
    {
      hint:
        `To use the result, move ${files} away and run ${continuation}: it renames ${results}. ` +
        'With --overwrite, it replaces the changed file. Nothing is paid again.',
    },
  )
}

/** Returns the hash of a file. Undefined if it is not a regular file, or was changed while it was read. */
async function unchangedHash(path: string): Promise<string | undefined> {
  try {
    const before = statSync(path, { bigint: true })
    if (!before.isFile()) return undefined
    const sha256 = await sha256OfFile(path)
    const after = statSync(path, { bigint: true })
    const isSame = before.mtimeNs === after.mtimeNs && before.size === after.size && before.ino === after.ino
    return isSame ? sha256 : undefined
  } catch {
    return undefined
  }
}

/** Returns `fox-2.png` for `fox.png`, or a higher number if that is the name of a file or of another output. */
function freeNameBeside(path: string, { steps, disk }: Plan, folder: string): string {
  const keyOf = (file: string) => {
    const { dir, name } = posix.parse(file)
    return disk.keyOf(posix.join(dir, name))
  }
  const planned = new Set(steps.flatMap(({ outputs }) => outputs.map(({ name }) => keyOf(name))))
  for (let number = 2; ; number++) {
    const beside = numbered(path, number, sep)
    const isTaken =
      statOfLink(beside) !== undefined || planned.has(keyOf(relative(folder, beside).replaceAll('\\', '/')))
    if (!isTaken) return beside
  }
}

/**
 * Refuses a download with different bytes: other rows were made from the bytes recorded in the lock file. Throws
 * `download_failed`.
 */
export function refuseOtherBytes({ sha256 }: DownloadedFile, step: ActiveStep, at: number): void {
  const known = knownOutputs(step)[at]
  if (known === undefined || known.sha256 === sha256) return
  throw new RushesError(
    'download_failed',
    'The output that was downloaded again has other bytes than the lock file says.',
    {
      hint: 'If the service has changed the file, create it again with --force --only.',
    },
  )
}
