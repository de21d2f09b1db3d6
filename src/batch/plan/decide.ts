/**
 * What is to be done for one run of a manifest, pure. In this order: what was paid for is downloaded before anyone pays
 * again; a create whose outcome is unknown is left alone; an unknown file is replaced only with `--overwrite`.
 */
import type { LockEntry } from '../lock/lock.js'

/** What exists at the path of an output. */
export type FileFact =
  | {
      readonly is: 'missing'
      /** Absolute path of the file that the lock file knows, where it lies at another place: the output was renamed. */
      readonly elsewhere?: string | undefined
    }
  /** `sha256` is undefined where it cannot be the one that the lock file knows. */
  | { readonly is: 'file'; readonly sha256: string | undefined }
  /** Never replaced: a folder, a device. */
  | { readonly is: 'other'; readonly what: string }

export interface Flags {
  readonly force: boolean
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
  /** Something that must not be replaced is in the way. */
  | { readonly do: 'conflict'; readonly why: string }
  | BlockedAction

/** An output that it uses will not be there. */
export interface BlockedAction {
  readonly do: 'blocked'
  readonly why: string
  /** Name of the row that keeps it back; undefined where the reference itself cannot be used. */
  readonly by: string | undefined
}

/** The run exists: it is followed if it has not ended, and its output is downloaded. Costs nothing. */
export interface DownloadAction {
  readonly do: 'download'
  readonly why: 'unfinished' | 'missing' | 'changed' | 'moved'
  readonly run: string
  /** Absolute path of a file here that is the output, byte for byte: it is copied, without a request. */
  readonly copyFrom?: string
  /** A file is there, and may be replaced. */
  readonly replaces: boolean
}

/** A run is created and paid for. */
export interface CreateAction {
  readonly do: 'create'
  readonly why: 'missing' | 'out_of_date' | 'forced' | 'unconfirmed'
  /** The inputs that differ from those that the file was made from; empty where the lock file does not say. */
  readonly changed?: readonly string[]
  readonly replaces: boolean
}

export interface RowSituation {
  /** Of model and input; undefined while no model is known, or an output that it uses does not exist yet. */
  readonly hash: string | undefined
  readonly locked: LockEntry | undefined
  readonly file: FileFact
  readonly flags: Flags
}

export function decide({ hash, locked, file, flags }: RowSituation): Action {
  const { made, pending } = locked ?? {}
  const placing = pending?.state === 'accepted' ? pending.placing : undefined
  const own = [made?.sha256, placing?.sha256].filter((each) => each !== undefined)
  const isOurs = file.is === 'file' && file.sha256 !== undefined && own.includes(file.sha256)
  const isAsMade = made !== undefined && made.hash === hash
  const isPending = pending !== undefined && pending.hash === hash
  const replaces = file.is !== 'missing'
  const inTheWay = isOurs ? undefined : obstacle(file, isAsMade, flags)

  if (isPending && pending.state === 'accepted')
    return inTheWay ?? { do: 'download', why: 'unfinished', run: pending.run, replaces }
  if (isAsMade && file.is === 'file' && file.sha256 === made.sha256 && !flags.force)
    return { do: 'up_to_date' }
  if (isPending && !flags.resubmitUnconfirmed)
    return { do: 'unconfirmed', key: pending.state === 'unconfirmed' ? pending.key : undefined }
  if (inTheWay !== undefined) return inTheWay
  if (isPending) return { do: 'create', why: 'unconfirmed', replaces }
  if (made === undefined) return { do: 'create', why: 'missing', replaces }
  if (flags.force) return { do: 'create', why: 'forced', replaces }
  if (!isAsMade) return { do: 'create', why: 'out_of_date', replaces }
  if (file.is !== 'missing') return { do: 'download', why: 'changed', run: made.run, replaces }
  return file.elsewhere === undefined
    ? { do: 'download', why: 'missing', run: made.run, replaces }
    : { do: 'download', why: 'moved', run: made.run, replaces, copyFrom: file.elsewhere }
}

function obstacle(file: FileFact, isAsMade: boolean, { overwrite }: Flags): Action | undefined {
  if (file.is === 'other') return { do: 'conflict', why: file.what }
  if (file.is === 'missing' || overwrite) return undefined
  return { do: 'conflict', why: isAsMade ? 'changed since it was downloaded' : 'not created by this batch' }
}
