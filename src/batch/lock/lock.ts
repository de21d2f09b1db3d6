/**
 * What the lock file knows of each run of a manifest. `made` is the file that is there; `pending` is a create that
 * came after it and has no file yet, so that a killed batch continues and nothing is paid twice.
 */
import { basename, dirname, join } from 'node:path'
import type { Kind } from '../../protocol/models.js'

/** A short hash of each input that a run was created from: tells which of them has changed. */
export type InputHashes = Readonly<Record<string, string>>

export interface Output {
  /** Without query, fragment and credentials: see `publicUrl`. */
  readonly url: string
  /** Relative to the manifest, with `/`. */
  readonly file: string
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

/** An output of a run after its first one: `row:hero#2`. */
export interface FurtherOutput extends Output {
  /** Older versions keep the field when they create the row again: outputs of another run do not count. */
  readonly run: string
}

/** Fields that this version does not know are kept for the version that wrote them. */
type Further = Readonly<Record<string, unknown>>

/** A run that has succeeded, with its first output. */
export interface Made extends Output {
  /** Of model and input: 64 hexadecimal digits. */
  readonly hash: string
  readonly model: string
  readonly kind: Kind | undefined
  /** The run's id. */
  readonly run: string
  /** The address at which the run was created; undefined where it is not known. */
  readonly service: string | undefined
  /** ISO 8601 in UTC. */
  readonly made_at: string
  /** Undefined in lock files of older versions. */
  readonly inputs?: InputHashes | undefined
  readonly outputs?: readonly FurtherOutput[] | undefined
}

interface PendingCreate {
  readonly hash: string
  readonly model: string
  readonly kind: Kind | undefined
  readonly service: string | undefined
  /** ISO 8601 in UTC: when the create was sent. */
  readonly sent_at: string
  readonly inputs?: InputHashes | undefined
  readonly placing?: readonly Placing[] | undefined
}

/** An output that is about to get its name, or has it: a batch that was killed right then recognizes the file. */
export interface Placing {
  /** Undefined in lock files of older versions. */
  readonly run: string | undefined
  /** Counted from 1. */
  readonly output: number
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

export type Pending =
  /** The run exists, and its outputs are not all here yet. */
  | (PendingCreate & { readonly state: 'accepted'; readonly run: string })
  /** A create was sent or was about to be, and its outcome is unknown. */
  | (PendingCreate & {
      readonly state: 'unconfirmed'
      /** Of the journal's row, where that is known. */
      readonly key: string | undefined
      /** Of this very create: the journal has it too. Undefined in lock files of older versions. */
      readonly token: string | undefined
    })

export interface LockEntry {
  readonly made: Made | undefined
  readonly pending: Pending | undefined
  readonly further: Further
}

export interface Lock {
  /** Name of the manifest's file, so that two manifests of one stem do not share a lock file unnoticed. */
  readonly manifest: string | undefined
  readonly entries: ReadonlyMap<string, LockEntry>
  readonly further: Further
}

export const NO_LOCK: Lock = { manifest: undefined, entries: new Map(), further: {} }

/** `shots.yaml` has `shots.lock.json`. */
export const lockPathOf = (manifest: string): string => `${manifest.replace(/\.[^./\\]+$/, '')}.lock.json`

/** The claim of the batch that is running: `.shots.lock.json.claim`. */
export const claimPathOf = (lockPath: string): string =>
  join(dirname(lockPath), `.${basename(lockPath)}.claim`)

/**
 * The lock file goes into git, and the URLs of many services are signed: anyone who has one can fetch the file. So only the
 * public part is kept; the output is downloaded again by its run id.
 */
export function publicUrl(url: string): string {
  const parsed = new URL(url)
  return `${parsed.origin}${parsed.pathname}`
}

/** The outputs of a run that the lock file knows, in their order. */
export function outputsOf(made: Made | undefined): readonly Output[] {
  if (made === undefined) return []
  return [made, ...(made.outputs ?? []).filter(({ run }) => run === made.run)]
}

/** The outputs after the first one, of every row. */
export const furtherOutputsOf = ({ entries }: Lock) =>
  [...entries].flatMap(([name, { made }]) =>
    outputsOf(made)
      .slice(1)
      .map(({ file }, at) => ({ name, number: at + 2, file })),
  )

/** The files of a run that may have got their names, while `made` does not know them. */
export const placingsOf = (locked: LockEntry | undefined): readonly Placing[] =>
  locked?.pending?.placing ?? []

/** The lock with one entry set or removed. */
export function withEntry(lock: Lock, name: string, entry: LockEntry | undefined): Lock {
  const entries = new Map(lock.entries)
  if (entry === undefined) entries.delete(name)
  else entries.set(name, entry)
  return { ...lock, entries }
}
