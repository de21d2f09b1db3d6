/**
 * Chooses the paths of a run's outputs. Checks all of them before the first file is replaced, so that nothing is lost.
 */
import { resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { type LockedOutput, outputsOf, type Placing, placingsOf } from '../lock/lock.js'
import { type Disk, isInPlace, isReplaceable, type PlannedOutput } from '../plan/index.js'
import type { ActiveStep } from './rows.js'

/** Path of an output. */
export interface Place {
  /** Absolute path. May end in `.{ext}`. */
  readonly path: string
  /** Whether an existing file may be replaced. */
  readonly mayReplace: boolean
  /** The existing file, if the output needs no download. */
  readonly inPlace: OutputFile | undefined
}

/** A downloaded output. `path`: absolute. */
export type OutputFile = Omit<LockedOutput, 'file'> & { readonly path: string }

export interface PlacesOptions {
  /** URLs of the outputs. For a new run their number is known only now. */
  readonly urls: readonly string[]
  readonly disk: Disk
  /** Absolute path of the manifest's folder. */
  readonly folder: string
}

/**
 * Returns the place of each output. Throws `download_failed` if an output that was not in the plan would replace a
 * file.
 */
export async function placesFor(
  step: ActiveStep,
  { urls, disk, folder }: PlacesOptions,
): Promise<readonly Place[]> {
  const { entry, locked, outputs: planned, flags } = step
  const isMore = urls.length > planned.length
  const found = isMore ? (await disk.again().lookAt(entry, locked, urls.length)).slice(planned.length) : []
  const known = knownOutputs(step)
  if (known.length === 0) for (const each of found) refuseFile(each, flags.overwrite)
  return [...planned.slice(0, urls.length), ...found].map(({ file, name, fact }, at): Place => {
    const path = resolve(folder, file)
    const output = known[at] ?? placedOutput(step, at)
    // Keep the name used by the download: leftovers of a killed batch under that name are removed.
    if (output !== undefined && isInPlace(fact, output.sha256))
      return {
        path: resolve(folder, name),
        mayReplace: false,
        inPlace: { url: urls[at] ?? '', ...output, path },
      }
    // The plan checked only the files that it knew.
    const isChecked = fact.is === 'file' && (at < planned.length || isReplaceable(fact))
    return { path, mayReplace: isChecked || flags.overwrite, inPlace: undefined }
  })
}

/** Returns the outputs in the lock file if the run is downloaded again. Empty for a new run. */
function knownOutputs({ action, locked }: ActiveStep): readonly LockedOutput[] {
  const isAgain = action.do === 'download' && action.why !== 'unfinished' && action.run === locked?.made?.run
  return isAgain ? outputsOf(locked?.made) : []
}

/** Returns the output that a killed batch had already moved into place. */
function placedOutput({ action, locked }: ActiveStep, at: number): Placing | undefined {
  const run = action.do === 'download' && action.why === 'unfinished' ? action.run : undefined
  return placingsOf(locked).findLast(
    (each) => each.run === run && run !== undefined && each.output === at + 1,
  )
}

function refuseFile({ file, fact }: PlannedOutput, overwrites: boolean): void {
  const isForeign = fact.is === 'file' && fact.known === undefined
  if (fact.is === 'missing' || isReplaceable(fact) || (overwrites && isForeign)) return
  throw new RushesError('download_failed', `${file} already exists, and is not of this row.`, {
    hint: 'Move it away, or replace it with --overwrite. The run is paid for: the same command downloads it then.',
  })
}

/**
 * Refuses a download with different bytes: other rows were made from the bytes recorded in the lock file. Throws
 * `download_failed`.
 */
export function refuseOtherBytes({ sha256 }: OutputFile, step: ActiveStep, at: number): void {
  const known = knownOutputs(step)[at]
  if (known === undefined || known.sha256 === sha256) return
  throw new RushesError(
    'download_failed',
    'The output that was downloaded again has other bytes than the lock file says.',
    {
      hint: 'Run the same command again. If the service has changed the file, create the row again with --force --only.',
    },
  )
}
