/**
 * The lock file as values. It has an entry for each run of a manifest. `made` describes the existing file.
 * `pending` is a later create that has no file yet: after a kill, the next batch continues it, so that nothing is paid
 * twice.
 */
import { basename, dirname, join } from 'node:path'
import type { Kind } from '../../protocol/models.js'

/** Short hash of each input of a run, by name. Shows which input has changed. */
export type InputHashes = Readonly<Record<string, string>>

export interface LockedOutput {
  /** URL without query, fragment and credentials: see `publicUrl`. */
  readonly url: string
  /** Path relative to the manifest, separated by `/`. */
  readonly file: string
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

/** An output of a run after its first one: `row:hero#2`. */
export interface FurtherOutput extends LockedOutput {
  /**
   * Id of the run. Older versions keep `outputs` when they create the row again, so outputs of another run are ignored.
   */
  readonly run: string
}

/** Unknown fields, kept for the newer version that wrote them. */
export type Further = Readonly<Record<string, unknown>>

/** A run that has succeeded, with its first output. */
export interface Made extends LockedOutput, CreateFacts {
  /** Id of the run. */
  readonly run: string
  /** ISO 8601 in UTC. */
  readonly made_at: string
  readonly outputs?: readonly FurtherOutput[] | undefined
}

export interface CreateFacts {
  /** Hash of model and input: 64 hexadecimal digits. */
  readonly hash: string
  readonly model: string
  readonly kind: Kind | undefined
  /** Address at which the run was created. Undefined if unknown. */
  readonly service: string | undefined
  /** Undefined in lock files of older versions. */
  readonly inputs?: InputHashes | undefined
}

interface PendingCreate extends CreateFacts {
  /** Time at which the create was sent. ISO 8601 in UTC. */
  readonly sent_at: string
  readonly placing?: readonly Placing[] | undefined
}

/** An output that is being moved into place. If the batch is killed at this point, the next one recognizes the file. */
export interface Placing {
  /** Undefined in lock files of older versions. */
  readonly run: string | undefined
  /** Number of the output, from 1. */
  readonly output: number
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

export type Pending =
  /** The run exists, and at least one output is not downloaded yet. */
  | (PendingCreate & { readonly state: 'accepted'; readonly run: string })
  /** The create may have been sent. Its outcome is unknown. */
  | (PendingCreate & {
      readonly state: 'unconfirmed'
      /** Key of the create's row in the journal, if known. */
      readonly key: string | undefined
      /** Token of the create, as in the journal. Undefined in lock files of older versions. */
      readonly token: string | undefined
    })

export interface LockEntry {
  readonly made: Made | undefined
  readonly pending: Pending | undefined
  readonly further: Further
}

export interface Lock {
  /** File name of the manifest. Detects two manifests that share a lock file because they have the same stem. */
  readonly manifest: string | undefined
  readonly entries: ReadonlyMap<string, LockEntry>
  /** Number of each run in its row, as `count` gives it, in the order of the manifest. May have names without an entry. */
  readonly rows: ReadonlyMap<string, number>
  readonly further: Further
}

export const NO_LOCK: Lock = { manifest: undefined, entries: new Map(), rows: new Map(), further: {} }

/** Returns the path of the lock file: `shots.lock.json` for `shots.yaml`. */
export const lockPathOf = (manifest: string): string => `${manifest.replace(/\.[^./\\]+$/, '')}.lock.json`

/** Returns the path of the claim of a running batch: `.shots.lock.json.claim`. */
export const claimPathOf = (lockPath: string): string =>
  join(dirname(lockPath), `.${basename(lockPath)}.claim`)

/**
 * Removes the secret parts of a URL. The lock file is committed to git, and many services sign their URLs: anyone with
 * such a URL can fetch the file. To download the output again, its run id is enough.
 */
export function publicUrl(url: string): string {
  const parsed = new URL(url)
  return `${parsed.origin}${parsed.pathname}`
}

/** Returns the outputs of a run in the lock file, in their order. */
export function outputsOf(made: Made | undefined): readonly LockedOutput[] {
  if (made === undefined) return []
  return [made, ...(made.outputs ?? []).filter(({ run }) => run === made.run)]
}

/** Returns files that may already have their final names although `made` does not list them. */
export const placingsOf = (locked: LockEntry | undefined): readonly Placing[] =>
  locked?.pending?.placing ?? []

/** Hashes of the runs of an entry. */
export const hashesOf = (entry: LockEntry | undefined): readonly string[] => [
  ...new Set([entry?.made?.hash, entry?.pending?.hash].filter((hash) => hash !== undefined)),
]

/** Returns the entry, or undefined if it says nothing of a run. */
export const entryWith = (entry: LockEntry): LockEntry | undefined =>
  (entry.made ?? entry.pending) === undefined ? undefined : entry

/** Returns the lock with one entry set or removed. */
export function withEntry(lock: Lock, name: string, entry: LockEntry | undefined): Lock {
  const entries = new Map(lock.entries)
  if (entry === undefined) entries.delete(name)
  else entries.set(name, entry)
  return { ...lock, entries }
}
