/** Computes the stored form of an input, and its identity, which is equal for equal requests. */
import { createHash } from 'node:crypto'
import { fromBase64, fromPercent, isSentImage, MediaSummary } from './media.js'
import { IMAGE_URLS, mediaOfParameter, mediaSources, withMedia } from './media-parameters.js'
import type { ModelInput } from './models.js'
import { isObject } from './parse.js'

/**
 * Summarizes the content of a data: URL (RFC 2397). Returns undefined for other text, and if the URL cannot be decoded.
 */
export function summaryOf(text: string): MediaSummary | undefined {
  const comma = /^data:/i.test(text) ? text.indexOf(',') : -1
  if (comma < 0 || !text.isWellFormed()) return undefined
  // Do not use a regular expression for the parameters: with a million parameters it would exhaust the stack.
  const head = text.slice('data:'.length, comma)
  const [written = ''] = head.split(';', 1)
  // Reject characters outside ASCII: in lower case, different characters can become equal, and so could two types.
  if (/[^\x20-\x7e\s]/.test(written)) return undefined
  const isBase64 = /^;\s*base64\s*$/i.test(head.slice(Math.max(written.length, head.lastIndexOf(';'))))
  const payload = text.slice(comma + 1)
  const bytes = isBase64 ? fromBase64(payload) : fromPercent(payload)
  if (bytes === undefined) return undefined
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return new MediaSummary(sha256, bytes.byteLength, written.trim().toLowerCase() || 'text/plain')
}

/** Names of the media parameters of a model without a document. */
const STANDARD: readonly string[] = [IMAGE_URLS]

/**
 * Replaces each data: URL in a media parameter by a summary, because media are too large for the journal. In objects and
 * lists of objects, the names of the fields say which are media. All other values are kept. `media`: names of the media
 * parameters.
 */
export function withoutData(input: unknown, media: Iterable<string> = STANDARD): unknown {
  const names = new Set(media)
  const isNestedMedia = (field: string) =>
    names.has(field) || mediaOfParameter(field, { type: 'string' }) !== undefined
  const inObject = (object: object, isMedia: (field: string) => boolean): object =>
    Object.fromEntries(Object.entries(object).map(([field, each]) => [field, stored(each, isMedia(field))]))
  const stored = (value: unknown, isSource: boolean): unknown => {
    if (Array.isArray(value)) return value.map((each) => stored(each, isSource))
    if (isObject(value) && !MediaSummary.is(value)) return inObject(value, isNestedMedia)
    return isSource ? contentOf(value) : value
  }
  return isObject(input) ? inObject(input, (field) => names.has(field)) : input
}

const contentOf = (media: unknown): unknown =>
  typeof media === 'string' ? (summaryOf(media) ?? media) : media

/**
 * Returns a hash that is equal for the same model and input. Two inputs with equal hashes differ at most in the order
 * of fields or the encoding of a data: URL. `media`: names of the media parameters.
 */
export function identityOf(model: string, input: unknown, media: Iterable<string> = STANDARD): string {
  const identified = isObject(input) ? withIdentities(input, media) : input
  return createHash('sha256')
    .update(canonical({ model, input: identified }))
    .digest('hex')
}

const withIdentities = (input: ModelInput, media: Iterable<string>): ModelInput =>
  withMedia(
    input,
    mediaSources(input, media).map((source) => ({ ...source, value: identified(source.value) })),
  )

/** Marks an object of the input that has the same fields as a summary. */
class LikeSummary {
  readonly value: object

  constructor(value: object) {
    this.value = value
  }
}

function identified(media: unknown): unknown {
  const content = contentOf(media)
  return isSentImage(content) && !MediaSummary.is(content) ? new LikeSummary(content) : content
}

function canonical(value: unknown): string {
  // No JSON text begins with `!`, so the hash differs from that of a summary.
  if (value instanceof LikeSummary) return `!${canonical(value.value)}`
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(',')}}`
}
