/**
 * The lock file as values and as text. It has an entry for each run of a manifest. `made` describes the existing file.
 * `pending` is a later create that has no file yet: after a kill, the next batch continues it, so that nothing is paid
 * twice.
 */
import { basename, dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'

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
export interface Made extends LockedOutput {
  /** Hash of model and input: 64 hexadecimal digits. */
  readonly hash: string
  readonly model: string
  readonly kind: Kind | undefined
  /** Id of the run. */
  readonly run: string
  /** Address at which the run was created. Undefined if unknown. */
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
  /** Time at which the create was sent. ISO 8601 in UTC. */
  readonly sent_at: string
  readonly inputs?: InputHashes | undefined
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
  readonly further: Further
}

export const NO_LOCK: Lock = { manifest: undefined, entries: new Map(), further: {} }

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

/** Returns the lock with one entry set or removed. */
export function withEntry(lock: Lock, name: string, entry: LockEntry | undefined): Lock {
  const entries = new Map(lock.entries)
  if (entry === undefined) entries.delete(name)
  else entries.set(name, entry)
  return { ...lock, entries }
}

const LOCK_VERSION = 1

/**
 * Returns the text of the lock file, designed for diffs and merges: sorted by name, one field per line, identical for
 * equal locks.
 */
export function lockText({ manifest, entries, further }: Lock): string {
  const rows = sortedByName(entries).map(
    ([name, entry]) => `${JSON.stringify(name)}: ${JSON.stringify(entryJson(entry), null, 2)}`,
  )
  const head = JSON.stringify(
    { version: LOCK_VERSION, ...(manifest !== undefined && { manifest }), ...sorted(further) },
    null,
    2,
  )
  // Write the entries one by one: an object would move names such as "10" to the front.
  const runs = rows.length === 0 ? '{}' : `{\n${indented(rows.join(',\n'))}\n}`
  return `${head.slice(0, -2)},\n${indented(`"runs": ${runs}`)}\n}\n`.replace(/\r/g, '')
}

const indented = (text: string): string => text.replace(/^/gm, '  ')

const sortedByName = <Value>(entries: Iterable<readonly [string, Value]>) =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))

const sorted = (further: Further) => Object.fromEntries(sortedByName(Object.entries(further)))

/** Key of an entry: equal for equal entries. */
export const entryText = (entry: LockEntry): string => JSON.stringify(entryJson(entry))

const entryJson = ({ made, pending, further }: LockEntry) => ({
  ...(made && defined(made)),
  ...sorted(further),
  ...(pending && { pending: defined(pending) }),
})

/** Omits undefined fields. Keeps the order of the type. */
const defined = (value: Made | Pending): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    [...MADE, ...PENDING].flatMap((name) => {
      const field = (value as unknown as Readonly<Record<string, unknown>>)[name]
      return field === undefined ? [] : [[name, field] as const]
    }),
  )

/** Fields in the order of the lock file. */
const MADE: readonly string[] =
  'hash kind model run service url file sha256 bytes content_type made_at inputs outputs'.split(' ')
const PENDING: readonly string[] = ['state', 'key', 'token', 'sent_at', 'placing']

const HINT =
  'Restore it from git. Without a lock file every run is created and paid for again, and existing files need --overwrite.'

const CONFLICT = /^(<{7}|\|{7}|={7}|>{7})( |\r?$)/m

/** Parses the text of a lock file. Throws `usage`, with the path. */
export function parseLock(text: string, path: string): Lock {
  const marker = CONFLICT.exec(text)
  if (marker !== null) {
    const line = text.slice(0, marker.index).split('\n').length
    throw usageError(
      `${path}:${line}: the lock file contains merge conflict markers.`,
      'Keep the entries of both sides and remove the markers. If a name occurs twice, keep the entry of the file that ' +
        'you keep. Then run the batch again: it creates missing assets.',
    )
  }
  const value = parsed(text)
  if (!isObject(value)) throw usageError(`${path} is not a valid lock file: it is not a JSON object.`, HINT)
  const { version, manifest, runs, ...further } = value
  if (typeof version === 'number' && version > LOCK_VERSION)
    throw usageError(
      `${path} was written by a newer version of rushes (format ${version}; this one knows ${LOCK_VERSION}).`,
      'Update rushes.',
    )
  if (version !== LOCK_VERSION || !isObject(runs))
    throw usageError(`${path} is not a lock file of rushes.`, HINT)
  const entries = Object.entries(runs).map(([name, entry]) => {
    const found = entryOf(entry)
    if (found === undefined) throw usageError(`${path}: the entry "${name}" is not valid.`, HINT)
    return [name, found] as const
  })
  return { manifest: typeof manifest === 'string' ? manifest : undefined, entries: new Map(entries), further }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
}

function entryOf(value: unknown): LockEntry | undefined {
  if (!isObject(value)) return undefined
  const { pending: pendingValue, ...fields } = value
  const further = Object.fromEntries(Object.entries(fields).filter(([name]) => !MADE.includes(name)))
  const made = fields.sha256 === undefined ? undefined : madeOf(fields)
  const pending = pendingValue === undefined ? undefined : pendingOf(pendingValue)
  const isWhole =
    (made !== undefined || fields.sha256 === undefined) &&
    (pending !== undefined || pendingValue === undefined)
  return isWhole && (made ?? pending) !== undefined ? { made, pending, further } : undefined
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const optional = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const kindOf = (value: unknown): Kind | undefined => KINDS.find((kind) => kind === value)
const isHash = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

function madeOf(fields: Further): Made | undefined {
  const { hash, sha256, bytes, model, run, file } = fields
  const isWhole =
    isHash(hash) &&
    isHash(sha256) &&
    Number.isSafeInteger(bytes) &&
    [model, run, file].every((each) => typeof each === 'string' && each !== '')
  if (!isWhole) return undefined
  return {
    hash,
    model: text(model),
    kind: kindOf(fields.kind),
    run: text(run),
    service: optional(fields.service),
    url: text(fields.url),
    file: text(file),
    sha256,
    bytes: Number(bytes),
    content_type: text(fields.content_type),
    made_at: text(fields.made_at),
    inputs: inputsOf(fields.inputs),
    outputs: furtherOutputsIn(fields.outputs),
  }
}

function inputsOf(value: unknown): InputHashes | undefined {
  if (!isObject(value)) return undefined
  return Object.fromEntries(Object.entries(value).map(([name, hash]) => [name, text(hash)]))
}

const furtherOutputsIn = (value: unknown): readonly FurtherOutput[] | undefined =>
  Array.isArray(value) ? value.map((each) => furtherOutputOf(isObject(each) ? each : {})) : undefined

const furtherOutputOf = (fields: Further): FurtherOutput => ({
  run: text(fields.run),
  url: text(fields.url),
  file: text(fields.file),
  sha256: text(fields.sha256),
  bytes: Number(fields.bytes) || 0,
  content_type: text(fields.content_type),
})

/** Older versions wrote one object instead of a list, for the first output. */
function placingOf(value: unknown): readonly Placing[] | undefined {
  const placings = (Array.isArray(value) ? value : [value]).flatMap((each): Placing[] => {
    const { run, output = 1, sha256, bytes, content_type }: Further = isObject(each) ? each : {}
    const isWhole = isHash(sha256) && Number.isSafeInteger(bytes) && isOutputNumber(output)
    if (!isWhole) return []
    return [{ run: optional(run), output, sha256, bytes: Number(bytes), content_type: text(content_type) }]
  })
  return placings.length === 0 ? undefined : placings
}

/** Limits output numbers: an edited lock file could contain a huge one. */
const isOutputNumber = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= 1_000

function pendingOf(value: unknown): Pending | undefined {
  if (!isObject(value) || !isHash(value.hash) || typeof value.model !== 'string') return undefined
  const common = {
    hash: value.hash,
    model: value.model,
    kind: kindOf(value.kind),
    service: optional(value.service),
    sent_at: text(value.sent_at),
    inputs: inputsOf(value.inputs),
    placing: placingOf(value.placing),
  }
  if (value.state === 'unconfirmed')
    return { ...common, state: 'unconfirmed', key: optional(value.key), token: optional(value.token) }
  if (value.state !== 'accepted' || typeof value.run !== 'string' || value.run === '') return undefined
  return { ...common, state: 'accepted', run: value.run }
}
