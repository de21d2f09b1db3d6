/**
 * The lock file of a manifest, as values and as text: the files that were made from it, one entry a run. Nothing in
 * flight is in it but one word: `working` names the state folder whose journal knows what is in flight. A batch that finds
 * another folder's name there knows that it cannot know.
 */
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'

export interface LockedOutput {
  /** URL without query, fragment and credentials: see `publicUrl`. */
  readonly url: string
  /** Path relative to the manifest, separated by `/`. */
  readonly file: string
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

/** A run that has succeeded, with its first output. May have further fields, which are kept. */
export interface Made extends LockedOutput {
  /** Hash of model and input: 64 hexadecimal digits. */
  readonly hash: string
  readonly kind?: Kind | undefined
  readonly model: string
  /** Id of the run. */
  readonly run: string
  /** Address at which the run was created. Undefined if unknown. */
  readonly service?: string | undefined
  /** ISO 8601 in UTC. */
  readonly made_at: string
  /** The outputs of other rows that it was made from: the first digits of their sha256, by `row:hero`. */
  readonly inputs?: Readonly<Record<string, string>>
  /** The outputs after the first one: `row:hero#2`. */
  readonly outputs?: readonly LockedOutput[] | undefined
}

export interface Lock {
  /** Identifies the batch in the journal. */
  readonly batch: string
  /** Id of the state folder whose journal knows what is in flight. */
  readonly working: string | undefined
  /** File name of the manifest. Detects two manifests that share a lock file because they have the same stem. */
  readonly manifest: string | undefined
  readonly entries: ReadonlyMap<string, Made>
}

export const newLock = (): Lock => ({
  batch: randomBytes(8).toString('hex'),
  working: undefined,
  manifest: undefined,
  entries: new Map(),
})

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
  return made === undefined ? [] : [made, ...(made.outputs ?? [])]
}

const LOCK_VERSION = 2

/** Returns the text of the lock file, designed for diffs and merges: sorted by name, one field per line. */
export function lockText({ manifest, batch, working, entries }: Lock): string {
  const runs = Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
  return `${JSON.stringify({ version: LOCK_VERSION, manifest, batch, working, runs }, null, 2)}\n`
}

const HINT =
  'Restore it from git, or remove the conflict markers of a merge and keep the entries of both sides. ' +
  'Without a lock file every run is created and paid for again, and existing files need --overwrite.'

/** Parses the text of a lock file. Throws `usage`, with the path. */
export function parseLock(text: string, path: string): Lock {
  const value = parsed(text)
  if (!isObject(value)) throw usageError(`${path} is not a valid lock file: it is not a JSON object.`, HINT)
  const { version, manifest, batch, working, runs } = value
  if (typeof version === 'number' && version > LOCK_VERSION)
    throw usageError(
      `${path} was written by a newer version of rushes (format ${version}; this one knows ${LOCK_VERSION}).`,
      'Update rushes.',
    )
  if (version !== LOCK_VERSION || !isObject(runs))
    throw usageError(`${path} is not a lock file of rushes.`, HINT)
  const entries = new Map<string, Made>()
  for (const [written, entry] of Object.entries(runs)) {
    const name = written.normalize('NFC')
    if (!isObject(entry) || !isMade(entry))
      throw usageError(`${path}: the entry "${name}" is not valid.`, HINT)
    entries.set(name, entry as unknown as Made)
  }
  return {
    ...newLock(),
    ...(typeof batch === 'string' && batch !== '' && { batch }),
    working: optional(working),
    manifest: optional(manifest),
    entries,
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

const optional = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const isHash = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

const isOutput = ({ file, sha256, bytes, url, content_type }: Fields): boolean =>
  isText(file) &&
  isHash(sha256) &&
  Number.isSafeInteger(bytes) &&
  [url, content_type].every((each) => typeof each === 'string')

const isMade = (fields: Fields): boolean =>
  isHash(fields.hash) &&
  [fields.model, fields.run, fields.made_at].every(isText) &&
  isOutput(fields) &&
  (fields.outputs === undefined ||
    (Array.isArray(fields.outputs) && fields.outputs.every((each) => isObject(each) && isOutput(each))))
