/**
 * What is to be done for one run of a manifest, pure. In this order: what was paid for is downloaded before anyone pays
 * again; a create whose outcome is unknown is left alone; an unknown file is replaced only with `--overwrite`.
 */
import { type LockEntry, outputsOf, placingsOf } from '../lock/lock.js'

/** What exists at the path of an output. */
export type FileFact =
  | ({ readonly is: 'missing' } & Elsewhere)
  /** `sha256` is undefined where it cannot be one that the lock file knows. */
  | ({
      readonly is: 'file'
      readonly sha256: string | undefined
      /**
       * The lock file knows it as another output: it may be replaced, since it moves with its row or is left behind. `of` is
       * the row that keeps it, because `--only` leaves that row out.
       */
      readonly known?: { readonly of: string | undefined } | undefined
    } & Elsewhere)
  /** Never replaced: a folder, a device. */
  | { readonly is: 'other'; readonly what: string }

interface Elsewhere {
  /** Absolute path of the output that the lock file knows, where it lies at another place: the output was renamed. */
  readonly elsewhere?: string | undefined
}

export interface Flags {
  readonly force: boolean
  /** `--force` with `--only`: also where the last run of the row has not ended. */
  readonly forcePending: boolean
  readonly overwrite: boolean
  readonly resubmitUnconfirmed: boolean
}

export type Action =
  | { readonly do: 'up_to_date' }
  /** Left out by `--only`. */
  | { readonly do: 'skip' }
  | DownloadAction
  | CreateAction
  /** Its last create may have made a run: it is not sent again. */
  | { readonly do: 'unconfirmed'; readonly key: string | undefined }
  | ConflictAction
  | BlockedAction

/** Something that must not be replaced is in the way. */
export interface ConflictAction {
  readonly do: 'conflict'
  readonly why: string
  /** Index of the output that it is about. */
  readonly at: number
  /** No row has it: `--overwrite` replaces it. */
  readonly isForeign: boolean
}

/** An output that it uses will not be there. */
export interface BlockedAction {
  readonly do: 'blocked'
  readonly why: string
  /** Name of the row that keeps it back; undefined where the reference itself cannot be used. */
  readonly by: string | undefined
}

/** The run exists: it is followed if it has not ended, and its outputs are downloaded. Costs nothing. */
export interface DownloadAction {
  readonly do: 'download'
  /** `moved`: every file that is not in place lies at another path here, and is moved without a request. */
  readonly why: 'unfinished' | 'missing' | 'changed' | 'moved'
  readonly run: string
  /** Index of the first output that is not in place. */
  readonly at: number
}

/** A run is created and paid for. */
export interface CreateAction {
  readonly do: 'create'
  readonly why: 'missing' | 'out_of_date' | 'forced' | 'unconfirmed'
  /** The inputs that differ from those that the file was made from; empty where the lock file does not say. */
  readonly changed?: readonly string[]
}

export interface RowSituation {
  /** Of model and input; undefined while no model is known, or an output that it uses does not exist yet. */
  readonly hash: string | undefined
  readonly locked: LockEntry | undefined
  /** What exists at the path of each output. */
  readonly facts: readonly FileFact[]
  readonly flags: Flags
}

export function decide({ hash, locked, facts, flags }: RowSituation): Action {
  const { made, pending } = locked ?? {}
  const isAsMade = made !== undefined && made.hash === hash
  const isPending = pending !== undefined && pending.hash === hash
  const known = outputsOf(made)
  const at = known.findIndex((_, index) => !isInPlace(facts[index], known[index]?.sha256))
  const inTheWay = conflictIn(facts, { locked, isAsMade, flags })

  if (isPending && pending.state === 'accepted') {
    if (inTheWay !== undefined) return inTheWay
    if (flags.forcePending) return { do: 'create', why: 'forced' }
    return { do: 'download', why: 'unfinished', run: pending.run, at: 0 }
  }
  // Also where the file is in place: a create of --force may have been paid for.
  if (isPending && pending.state === 'unconfirmed' && !flags.resubmitUnconfirmed)
    return { do: 'unconfirmed', key: pending.key }
  if (isAsMade && at === -1 && !flags.force && !isPending) return { do: 'up_to_date' }
  if (inTheWay !== undefined) return inTheWay
  if (isPending) return { do: 'create', why: 'unconfirmed' }
  if (made === undefined) return { do: 'create', why: 'missing' }
  if (flags.force) return { do: 'create', why: 'forced' }
  if (!isAsMade) return { do: 'create', why: 'out_of_date' }
  return { do: 'download', why: whyDownload(facts, known, at), run: made.run, at }
}

export const isInPlace = (fact: FileFact | undefined, sha256: string | undefined): boolean =>
  fact?.is === 'file' && sha256 !== undefined && fact.sha256 === sha256

/** A file of the lock file that moves, or is left behind. */
export const isReplaceable = (fact: FileFact): boolean =>
  fact.is === 'file' && fact.known !== undefined && fact.known.of === undefined

function whyDownload(
  facts: readonly FileFact[],
  known: readonly { readonly sha256: string }[],
  at: number,
): DownloadAction['why'] {
  const absent = known.flatMap(({ sha256 }, index) => (isInPlace(facts[index], sha256) ? [] : facts[index]))
  const isElsewhere = (fact: FileFact | undefined) =>
    fact !== undefined && fact.is !== 'other' && fact.elsewhere !== undefined
  if (absent.every(isElsewhere)) return 'moved'
  return facts[at]?.is === 'missing' ? 'missing' : 'changed'
}

interface Known {
  readonly locked: LockEntry | undefined
  /** The files there are those of this very input, or should be. */
  readonly isAsMade: boolean
  readonly flags: Pick<Flags, 'overwrite'>
}

/** The first output whose path has something that must not be replaced. */
function conflictIn(
  facts: readonly FileFact[],
  { locked, isAsMade, flags }: Known,
): ConflictAction | undefined {
  const known = outputsOf(locked?.made)
  const placings = placingsOf(locked)
  for (const [at, fact] of facts.entries()) {
    if (fact.is === 'other') return { do: 'conflict', why: fact.what, at, isForeign: false }
    if (fact.is === 'missing') continue
    const own = [known[at], ...placings.filter(({ output }) => output === at + 1)]
    if (own.some((each) => isInPlace(fact, each?.sha256))) continue
    if (isReplaceable(fact)) continue
    if (fact.known?.of !== undefined)
      return {
        do: 'conflict',
        why: `the file of "${fact.known.of}", which --only leaves out`,
        at,
        isForeign: false,
      }
    if (flags.overwrite) continue
    const isChanged = isAsMade && known[at] !== undefined && fact.elsewhere === undefined
    return {
      do: 'conflict',
      why: isChanged ? 'changed since it was downloaded' : 'not created by this batch',
      at,
      isForeign: true,
    }
  }
  return undefined
}
