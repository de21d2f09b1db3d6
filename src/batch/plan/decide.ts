/**
 * Decides the action of one run of a manifest, in this order: download paid outputs before paying again; do not repeat
 * a create whose outcome is unknown; replace an unknown file only with `--overwrite`. Pure.
 */
import { outputsOf } from '../lock/lock.js'
import { isInPlace, mayWrite, type PlannedOutput } from './disk.js'
import type { Flight, Paired } from './pair.js'

export interface RowFlags {
  readonly force: boolean
  /** `--force` with `--only`: create again even if the last run of the row has not ended. */
  readonly forcePending: boolean
  readonly overwrite: boolean
  readonly resubmitUnconfirmed: boolean
}

export type RowAction =
  | { readonly do: 'up_to_date' }
  /** `--only` does not select the row. */
  | { readonly do: 'skip' }
  | DownloadAction
  | CreateAction
  /** The last create may have created a run, so it is not sent again. */
  | { readonly do: 'unconfirmed'; readonly key: string | undefined }
  | ConflictAction
  | BlockedAction

/** A file that must not be replaced exists at the path of an output. */
interface ConflictAction {
  readonly do: 'conflict'
  readonly why: string
  /** Index of the conflicting output. */
  readonly at: number
  /** Whether no row has made the file. `--overwrite` replaces it. */
  readonly isForeign: boolean
}

/** An output that the row needs will not exist. */
export interface BlockedAction {
  readonly do: 'blocked'
  readonly why: string
  /** Name of the blocking row. Undefined if the reference itself is invalid. */
  readonly by: string | undefined
}

/** The run exists. Follows it to its end if necessary, and downloads its outputs. Free of charge. */
export interface DownloadAction {
  readonly do: 'download'
  /** `moved`: the outputs exist at other paths on this machine, and are moved without a request. */
  readonly why: 'unfinished' | 'missing' | 'changed' | 'moved'
  readonly run: string
  /** Index of the first output that is not at its path. */
  readonly at: number
}

/** Creates a run, which is paid for. */
export interface CreateAction {
  readonly do: 'create'
  readonly why: 'missing' | 'out_of_date' | 'forced' | 'unconfirmed'
}

export interface RowSituation extends Pick<Paired, 'hash' | 'locked' | 'flight'> {
  /** Files that a killed batch has given their names. Default: those of `flight`. */
  readonly placed?: Flight['files'] | undefined
  /** Whether the journal of another state folder knows what is in flight: every row without a result may be. */
  readonly isElsewhere: boolean
  readonly outputs: readonly Pick<PlannedOutput, 'file' | 'fact' | 'from'>[]
  readonly flags: RowFlags
}

export function decide(situation: RowSituation): RowAction {
  const { hash, locked, flight, outputs, flags } = situation
  const isAsMade = locked !== undefined && locked.hash === hash
  // A file with the same bytes at the path of a file that moves is that of another row.
  const isThere = outputsOf(locked).map(({ sha256 }, at) => {
    const output = outputs[at]
    return output !== undefined && output.from === undefined && isInPlace(output.fact, sha256)
  })
  const at = isThere.indexOf(false)
  const conflict = conflictIn(situation)

  if (flight?.run !== undefined) {
    if (conflict !== undefined) return conflict
    if (flags.forcePending) return { do: 'create', why: 'forced' }
    return { do: 'download', why: 'unfinished', run: flight.run, at: 0 }
  }
  const isUnconfirmed = flight !== undefined || (situation.isElsewhere && !isAsMade)
  // Also if the file is at its path: a create with --force may have been paid for.
  if (isUnconfirmed && !flags.resubmitUnconfirmed) return { do: 'unconfirmed', key: flight?.key }
  if (isAsMade && at === -1 && !flags.force && !isUnconfirmed) return { do: 'up_to_date' }
  if (conflict !== undefined) return conflict
  if (isUnconfirmed) return { do: 'create', why: 'unconfirmed' }
  if (locked === undefined) return { do: 'create', why: 'missing' }
  if (flags.force) return { do: 'create', why: 'forced' }
  if (!isAsMade) return { do: 'create', why: 'out_of_date' }
  const absent = outputs.find(({ from }, index) => isThere[index] === false && from === undefined)
  const why = absent === undefined ? 'moved' : absent.fact.is === 'missing' ? 'missing' : 'changed'
  return { do: 'download', why, run: locked.run, at }
}

/** Finds the first output whose path has a file that must not be replaced. */
function conflictIn({
  outputs,
  locked,
  flight,
  placed = flight?.files ?? [],
  flags,
}: RowSituation): ConflictAction | undefined {
  const known = outputsOf(locked)
  for (const [at, { file, fact }] of outputs.entries()) {
    if (fact.is === 'other') return { do: 'conflict', why: fact.what, at, isForeign: false }
    if (fact.is === 'missing' || mayWrite(fact, flags.overwrite)) continue
    if ([known[at], ...placed].some((each) => isInPlace(fact, each?.sha256))) continue
    const why = known[at]?.file === file ? 'changed since it was downloaded' : 'not created by this batch'
    return { do: 'conflict', why, at, isForeign: true }
  }
  return undefined
}
