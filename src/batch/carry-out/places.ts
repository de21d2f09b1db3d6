/** Names the outputs of a run. All are checked before the first file is replaced, so that nothing is lost. */
import { resolve } from 'node:path'
import { RushesError } from '../../errors.js'
import { type LockedOutput, outputsOf, type Placing, placingsOf } from '../lock/lock.js'
import { type Disk, isInPlace, isReplaceable, type PlannedOutput } from '../plan/index.js'
import type { ActiveStep } from './rows.js'

/** Where an output gets its name. */
export interface Place {
  /** Absolute; may end in `.{ext}`. */
  readonly path: string
  /** Whether a file of this name may be replaced. */
  readonly mayReplace: boolean
  /** The output is in place already, and is not downloaded. */
  readonly inPlace: OutputFile | undefined
}

/** `path` is absolute. */
export type OutputFile = Omit<LockedOutput, 'file'> & { readonly path: string }

export interface PlacesOptions {
  /** Of the outputs: how many there are is known only now where the run is new. */
  readonly urls: readonly string[]
  readonly disk: Disk
  /** Absolute: the manifest's. */
  readonly folder: string
}

/** Throws `download_failed` when an output that the plan did not know would replace a file. */
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
    // With the name of its download: what a killed batch has left of that is removed.
    if (output !== undefined && isInPlace(fact, output.sha256))
      return {
        path: resolve(folder, name),
        mayReplace: false,
        inPlace: { url: urls[at] ?? '', ...output, path },
      }
    // The plan has checked the files of its time.
    const isChecked = fact.is === 'file' && (at < planned.length || isReplaceable(fact))
    return { path, mayReplace: isChecked || flags.overwrite, inPlace: undefined }
  })
}

/** The outputs of a run that are downloaded again, as the lock file knows them; none of a new run. */
function knownOutputs({ action, locked }: ActiveStep): readonly LockedOutput[] {
  const isAgain = action.do === 'download' && action.why !== 'unfinished' && action.run === locked?.made?.run
  return isAgain ? outputsOf(locked?.made) : []
}

/** The file of a run that was killed before all of its outputs had their names. */
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

/** The rows that use the output were made from the bytes that the lock file knows. Throws `download_failed`. */
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
