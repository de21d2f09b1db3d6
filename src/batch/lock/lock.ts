/**
 * What the lock file knows of each run of a manifest. `made` is the file that is there; `pending` is a create that
 * came after it and has no file yet, so that a killed batch continues and nothing is paid twice.
 */
import { basename, dirname, join } from 'node:path'
import type { Kind } from '../../protocol/models.js'

/** A short hash of each input that a run was created from: tells which of them has changed. */
export type InputHashes = Readonly<Record<string, string>>

/** An output of a run after its first one: `row:hero#2`. */
export interface FurtherOutput {
  /** Older versions keep the field when they create the row again: outputs of another run do not count. */
  readonly run: string
  readonly url: string
  /** Relative to the manifest, with `/`. */
  readonly file: string
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

/** Fields that this version does not know are kept for the version that wrote them. */
type Further = Readonly<Record<string, unknown>>

export interface Made {
  /** Of model and input: 64 hexadecimal digits. */
  readonly hash: string
  readonly model: string
  readonly kind: Kind | undefined
  /** The run's id. */
  readonly run: string
  /** The address at which the run was created; undefined where it is not known. */
  readonly service: string | undefined
  /** Without query, fragment and credentials: see `publicUrl`. */
  readonly url: string
  /** Relative to the manifest, with `/`. */
  readonly file: string
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
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
}

export interface Placing {
  readonly sha256: string
  readonly bytes: number
}

export type Pending =
  /** The run exists, and its output is not here yet. */
  | (PendingCreate & {
      readonly state: 'accepted'
      readonly run: string
      /** The file that is about to be renamed: a batch that is killed right then recognizes it. */
      readonly placing?: Placing | undefined
    })
  /** A create was sent, and its outcome is unknown; `key` is that of the journal's row. */
  | (PendingCreate & { readonly state: 'unconfirmed'; readonly key: string | undefined })

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

/** An output of a row, counted from 1; undefined where the lock file does not know it. */
export function outputOf(made: Made | undefined, number: number): Omit<FurtherOutput, 'run'> | undefined {
  if (made === undefined || number === 1) return made
  const output = made.outputs?.[number - 2]
  return output?.run === made.run ? output : undefined
}

/** The lock with one entry set or removed. */
export function withEntry(lock: Lock, name: string, entry: LockEntry | undefined): Lock {
  const entries = new Map(lock.entries)
  if (entry === undefined) entries.delete(name)
  else entries.set(name, entry)
  return { ...lock, entries }
}
