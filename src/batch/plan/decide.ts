/**
 * Decides the action of one run of a manifest, in this order: download paid outputs before paying again; do not repeat
 * a create whose outcome is unknown; replace an unknown file only with `--overwrite`. Pure.
 */
import { outputsOf } from '../lock/lock.js'
import type { Flight, Paired } from './pair.js'

/** State of the path of an output. */
export type FileFact =
  | ({ readonly is: 'missing' } & Elsewhere)
  /** `sha256` is undefined if the file cannot match any hash in the lock file. */
  | ({
      readonly is: 'file'
      readonly sha256: string | undefined
      /**
       * Set if the lock file lists the file as another output. It may then be replaced, because its row moves it or no
       * longer uses it. `of`: name of a row that keeps the file because `--only` leaves that row out. The file is then
       * not replaced.
       */
      readonly known?: { readonly of: string | undefined } | undefined
    } & Elsewhere)
  /** A folder or a device. Never replaced. */
  | { readonly is: 'other'; readonly what: string }

interface Elsewhere {
  /** Absolute path of the locked output's file, if the output was renamed and the file is still at its old path. */
  readonly elsewhere?: string | undefined
}

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
  /** What has changed since the file was made, where that is known: `model`, `row:hero`. */
  readonly changed?: readonly string[]
}

interface RowSituation extends Pick<Paired, 'hash' | 'locked' | 'flight'> {
  /** Files that a killed batch has given their names. Default: those of `flight`. */
  readonly placed?: Flight['files']
  /** Whether the journal of another state folder knows what is in flight: every row without a result may be. */
  readonly isElsewhere: boolean
  /** State of the path of each output. */
  readonly facts: readonly FileFact[]
  readonly flags: RowFlags
}

export function decide(situation: RowSituation): RowAction {
  const { hash, locked, flight, facts, flags } = situation
  const isAsMade = locked !== undefined && locked.hash === hash
  const known = outputsOf(locked)
  const isThere = known.map(({ sha256 }, at) => isInPlace(facts[at], sha256) && !isElsewhere(facts[at]))
  const at = isThere.indexOf(false)
  const pathConflict = conflictIn(situation, isAsMade)

  if (flight?.run !== undefined) {
    if (pathConflict !== undefined) return pathConflict
    if (flags.forcePending) return { do: 'create', why: 'forced' }
    return { do: 'download', why: 'unfinished', run: flight.run, at: 0 }
  }
  const isUnconfirmed = flight !== undefined || (situation.isElsewhere && !isAsMade)
  // Also if the file is at its path: a create with --force may have been paid for.
  if (isUnconfirmed && !flags.resubmitUnconfirmed) return { do: 'unconfirmed', key: flight?.key }
  if (isAsMade && at === -1 && !flags.force && !isUnconfirmed) return { do: 'up_to_date' }
  if (pathConflict !== undefined) return pathConflict
  if (isUnconfirmed) return { do: 'create', why: 'unconfirmed' }
  if (locked === undefined) return { do: 'create', why: 'missing' }
  if (flags.force) return { do: 'create', why: 'forced' }
  if (!isAsMade) return { do: 'create', why: 'out_of_date' }
  const absent = facts.filter((fact, index) => isThere[index] === false && !isElsewhere(fact))
  const why = absent.length === 0 ? 'moved' : absent[0]?.is === 'missing' ? 'missing' : 'changed'
  return { do: 'download', why, run: locked.run, at }
}

export const isInPlace = (fact: FileFact | undefined, sha256: string | undefined): boolean =>
  fact?.is === 'file' && sha256 !== undefined && fact.sha256 === sha256

/** Also where a file with the same bytes is at the path of the output: another row may move that file. */
const isElsewhere = (fact: FileFact | undefined): boolean =>
  fact !== undefined && fact.is !== 'other' && fact.elsewhere !== undefined

/** Whether the file belongs to another locked output that will move or is no longer used. */
export const isReplaceable = (fact: FileFact): boolean =>
  fact.is === 'file' && fact.known !== undefined && fact.known.of === undefined

/** Finds the first output whose path has a file that must not be replaced. */
function conflictIn(
  { facts, locked, flight, placed = flight?.files ?? [], flags }: RowSituation,
  isAsMade: boolean,
): ConflictAction | undefined {
  const known = outputsOf(locked)
  for (const [at, fact] of facts.entries()) {
    if (fact.is === 'other') return { do: 'conflict', why: fact.what, at, isForeign: false }
    if (fact.is === 'missing') continue
    if ([known[at], ...placed].some((each) => isInPlace(fact, each?.sha256)) || isReplaceable(fact)) continue
    const keeper = fact.known?.of
    if (keeper !== undefined) {
      const why = `the file of "${keeper}", which --only leaves out`
      return { do: 'conflict', why, at, isForeign: false }
    }
    if (flags.overwrite) continue
    const isChanged = isAsMade && known[at] !== undefined && fact.elsewhere === undefined
    const why = isChanged ? 'changed since it was downloaded' : 'not created by this batch'
    return { do: 'conflict', why, at, isForeign: true }
  }
  return undefined
}
