/** The lock file as text. Made for diffs and merges: sorted by name, one field per line, deterministic. */
import { usageError } from '../../errors.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import type { FurtherOutput, InputHashes, Lock, LockEntry, Made, Pending, Placing } from './lock.js'

export const LOCK_VERSION = 1

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  a < b ? -1 : a > b ? 1 : 0

/** Ends with a line end. Equal for equal locks, byte for byte. */
export function lockText({ manifest, entries, further }: Lock): string {
  const rows = [...entries]
    .sort(byName)
    .map(([name, entry]) => `${JSON.stringify(name)}: ${JSON.stringify(entryJson(entry), null, 2)}`)
  const head = JSON.stringify(
    { version: LOCK_VERSION, ...(manifest !== undefined && { manifest }), ...sorted(further) },
    null,
    2,
  )
  // Written entry by entry: an object would move names such as "10" to the front.
  const runs = rows.length === 0 ? '{}' : `{\n${indented(rows.join(',\n'))}\n}`
  return `${head.slice(0, -2)},\n${indented(`"runs": ${runs}`)}\n}\n`.replace(/\r/g, '')
}

const indented = (text: string): string => text.replace(/^/gm, '  ')

const sorted = (further: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(further).sort(byName))

/** Equal for equal entries. */
export const entryText = (entry: LockEntry): string => JSON.stringify(entryJson(entry))

const entryJson = ({ made, pending, further }: LockEntry) => ({
  ...(made && defined(made)),
  ...sorted(further),
  ...(pending && { pending: defined(pending) }),
})

/** Fields without a value are left out; the order is that of the type. */
const defined = (value: Made | Pending): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    [...MADE, ...PENDING].flatMap((name) => {
      const field = (value as unknown as Readonly<Record<string, unknown>>)[name]
      return field === undefined ? [] : [[name, field] as const]
    }),
  )

const MADE = [
  'hash',
  'kind',
  'model',
  'run',
  'service',
  'url',
  'file',
  'sha256',
  'bytes',
  'content_type',
  'made_at',
  'inputs',
  'outputs',
] as const
const PENDING = ['state', 'key', 'token', 'sent_at', 'placing'] as const

const HINT =
  'Restore it from git. Without a lock file every run is created and paid for again, and existing files need --overwrite.'

const CONFLICT = /^(<{7}|\|{7}|={7}|>{7})( |\r?$)/m

/** Throws `usage`, naming the file. */
export function parseLock(text: string, path: string): Lock {
  const marker = CONFLICT.exec(text)
  if (marker !== null) {
    const line = text.slice(0, marker.index).split('\n').length
    throw usageError(
      `${path}:${line}: the lock file contains merge conflict markers.`,
      'Keep the entries of both sides and remove the markers. If a name occurs twice, keep the entry of the file that you keep. Then run the batch again: it creates missing assets.',
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
  const further = Object.fromEntries(
    Object.entries(fields).filter(([name]) => !(MADE as readonly string[]).includes(name)),
  )
  const made = fields.sha256 === undefined ? undefined : madeOf(fields)
  const pending = pendingValue === undefined ? undefined : pendingOf(pendingValue)
  const isWhole =
    (made !== undefined || fields.sha256 === undefined) &&
    (pending !== undefined || pendingValue === undefined)
  return isWhole && (made ?? pending) !== undefined ? { made, pending, further } : undefined
}

type Fields = Readonly<Record<string, unknown>>

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const optional = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const kindOf = (value: unknown): Kind | undefined => KINDS.find((kind) => kind === value)
const isHash = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

function madeOf(fields: Fields): Made | undefined {
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
    outputs: outputsOf(fields.outputs),
  }
}

function inputsOf(value: unknown): InputHashes | undefined {
  if (!isObject(value)) return undefined
  return Object.fromEntries(Object.entries(value).map(([name, hash]) => [name, text(hash)]))
}

const outputsOf = (value: unknown): readonly FurtherOutput[] | undefined =>
  Array.isArray(value) ? value.map((each) => furtherOutputOf(isObject(each) ? each : {})) : undefined

const furtherOutputOf = (fields: Fields): FurtherOutput => ({
  run: text(fields.run),
  url: text(fields.url),
  file: text(fields.file),
  sha256: text(fields.sha256),
  bytes: Number(fields.bytes) || 0,
  content_type: text(fields.content_type),
})

/** Older versions wrote one object, of the first output. */
function placingOf(value: unknown): readonly Placing[] | undefined {
  const placings = (Array.isArray(value) ? value : [value]).flatMap((each): Placing[] => {
    const { run, output = 1, sha256, bytes, content_type }: Fields = isObject(each) ? each : {}
    const isWhole = isHash(sha256) && Number.isSafeInteger(bytes) && isOutputNumber(output)
    if (!isWhole) return []
    return [{ run: optional(run), output, sha256, bytes: Number(bytes), content_type: text(content_type) }]
  })
  return placings.length === 0 ? undefined : placings
}

/** A lock file that someone has edited must not name a millionth output. */
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
