/** The text of the lock file. */
import { usageError } from '../../errors.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import {
  entryWith,
  type Further,
  type FurtherOutput,
  hashesOf,
  type InputHashes,
  type Lock,
  type LockEntry,
  type Made,
  type Pending,
  type Placing,
} from './lock.js'

const LOCK_VERSION = 1

/**
 * Returns the text of the lock file, designed for diffs and merges: sorted by name, one field per line, identical for
 * equal locks.
 */
export function lockText(lock: Lock): string {
  const { manifest, entries, further } = lock
  const positions = positionsOf(lock)
  const rows = sortedByName(entries).map(([name, entry]) => {
    const fields = { ...positions.get(name), ...entryJson(entry) }
    return `${JSON.stringify(name)}: ${JSON.stringify(fields, null, 2)}`
  })
  const head = JSON.stringify(
    { version: LOCK_VERSION, ...(manifest !== undefined && { manifest }), ...sorted(further) },
    null,
    2,
  )
  // Write the entries one by one: an object would move names such as "10" to the front.
  const runs = rows.length === 0 ? '{}' : `{\n${indented(rows.join(',\n'))}\n}`
  return `${head.slice(0, -2)},\n${indented(`"runs": ${runs}`)}\n}\n`.replace(/\r/g, '')
}

/** Not `/^/gm`: for a regular expression, U+2028 in a name ends a line too. */
const indented = (text: string): string => `  ${text.replaceAll('\n', '\n  ')}`

const sortedByName = <Value>(entries: Iterable<readonly [string, Value]>) =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))

const sorted = (further: Further) => Object.fromEntries(sortedByName(Object.entries(further)))

/**
 * Place of a row in the manifest, kept for rows that have one input: they keep their own outputs when they are renamed.
 * Other entries do not have it, so a new row changes no line of others.
 */
interface Position {
  /** Number of the entry among those of the same input, in the order of the manifest. Absent for the first one. */
  readonly order?: number
  /** Number that `count` gave to the run. Absent for the first one. */
  readonly variant?: number
}

/** Returns the fields of each entry. */
function positionsOf({ entries, rows }: Lock): ReadonlyMap<string, Position> {
  const others = [...entries.keys()].filter((name) => !rows.has(name)).sort()
  const last = new Map<string, number>()
  const positions = new Map<string, Position>()
  for (const name of [...rows.keys(), ...others]) {
    const entry = entries.get(name)
    if (entry === undefined) continue
    const hashes = hashesOf(entry)
    const order = 1 + Math.max(0, ...hashes.map((hash) => last.get(hash) ?? 0))
    for (const hash of hashes) last.set(hash, order)
    const variant = rows.get(name) ?? 1
    positions.set(name, { ...(order > 1 && { order }), ...(variant > 1 && { variant }) })
  }
  return positions
}

/** Returns the rows in their old order, from the fields of their entries. */
function rowsOf(entries: readonly (readonly [string, Further])[]): Lock['rows'] {
  const rows = entries.map(
    ([name, { order, variant }]) => [name, numberOf(variant), numberOf(order)] as const,
  )
  return new Map(rows.sort(([, , a], [, , b]) => a - b).map(([name, variant]) => [name, variant]))
}

const numberOf = (value: unknown): number =>
  Number.isSafeInteger(value) && Number(value) > 1 ? Number(value) : 1

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
const KNOWN: readonly string[] = [...MADE, 'order', 'variant']

const HINT =
  'Restore it from git. Without a lock file every run is created and paid for again, and existing files need --overwrite.'

const CONFLICT = /(?<=^|\n)(<{7}|\|{7}|={7}|>{7})( |\r?\n|\r?$)/

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
  const names = normalizedNames(Object.keys(runs))
  const fields = Object.values(runs).map(
    (entry, at) => [names[at] ?? '', isObject(entry) ? entry : {}] as const,
  )
  const entries = fields.map(([name, entry]) => {
    const found = entryOf(entry)
    if (found === undefined) throw usageError(`${path}: the entry "${name}" is not valid.`, HINT)
    return [name, found] as const
  })
  return {
    manifest: typeof manifest === 'string' ? manifest : undefined,
    entries: new Map(entries),
    rows: rowsOf(fields),
    further,
  }
}

/** Returns the names in the Unicode form NFC. Two forms of one name, as after a merge, stay two entries. */
function normalizedNames(names: readonly string[]): readonly string[] {
  const forms = new Map<string, number>()
  for (const name of names) forms.set(name.normalize(), (forms.get(name.normalize()) ?? 0) + 1)
  return names.map((name) => (forms.get(name.normalize()) === 1 ? name.normalize() : name))
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
  const further = Object.fromEntries(Object.entries(fields).filter(([name]) => !KNOWN.includes(name)))
  const made = fields.sha256 === undefined ? undefined : madeOf(fields)
  const pending = pendingValue === undefined ? undefined : pendingOf(pendingValue)
  const isWhole =
    (made !== undefined || fields.sha256 === undefined) &&
    (pending !== undefined || pendingValue === undefined)
  return isWhole ? entryWith({ made, pending, further }) : undefined
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

function placingOf(value: unknown): readonly Placing[] | undefined {
  const placings = (Array.isArray(value) ? value : []).flatMap((each): Placing[] => {
    const { run, output, sha256, bytes, content_type }: Further = isObject(each) ? each : {}
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
