/**
 * Whether a download may go on where one stopped: pure, tested by table. A changed file must never be glued to an old
 * part, so the host itself has to say that it is still the same (RFC 9110, 13.1.5 and 14.4).
 */
import { HEAD_BYTES } from './file-kind.js'

/** What is known of the file that a part is a beginning of; nothing of its address, which may hold a secret. */
export interface About {
  readonly etag?: string | undefined
  /** Only where it tells one version from the next. */
  readonly lastModified?: string | undefined
  readonly totalBytes?: number | undefined
  readonly contentType?: string | undefined
}

export type Plan =
  | { readonly kind: 'anew' }
  /** Everything is there already. */
  | { readonly kind: 'whole' }
  | { readonly kind: 'from'; readonly bytes: number; readonly ifRange: string; readonly about: About }

export type Header = (name: string) => string | undefined

const STRONG_ETAG = /^"[\x21\x23-\x7e]*"$/

/**
 * A strong ETag; where the host gives none at all, the date of the last change. A weak ETag names files that mean the
 * same, not the same bytes, and a host that says so of its file is not asked by date either (RFC 9110, 13.1.5).
 */
export const validatorOf = ({ etag, lastModified }: About): string | undefined =>
  etag === undefined ? lastModified : STRONG_ETAG.test(etag) ? etag : undefined

/** What to ask for, with so many bytes of it at hand. */
export function planOf(about: About | undefined, bytes: number): Plan {
  const ifRange = about === undefined ? undefined : validatorOf(about)
  if (about === undefined || ifRange === undefined || bytes === 0) return { kind: 'anew' }
  const { totalBytes } = about
  if (totalBytes === bytes) return { kind: 'whole' }
  if (totalBytes !== undefined && bytes > totalBytes) return { kind: 'anew' }
  // They do not tell what the file is, and so not its name; fetching them again costs nothing.
  if (bytes < HEAD_BYTES) return { kind: 'anew' }
  return { kind: 'from', bytes, ifRange, about }
}

/** How many of the bytes at hand need not be fetched again. */
export const usefulBytes = (about: About | undefined, bytes: number): number =>
  planOf(about, bytes).kind === 'anew' ? 0 : bytes

/** What a whole answer tells of its file; undefined where its bytes are not those of the file (an encoding). */
export function aboutOf(header: Header): About | undefined {
  if (!isPlain(header)) return undefined
  const length = header('content-length')?.trim() ?? ''
  return {
    etag: header('etag')?.trim(),
    lastModified: tellingDate(header),
    totalBytes: /^\d{1,15}$/.test(length) ? Number(length) : undefined,
    contentType: header('content-type'),
  }
}

const isPlain = (header: Header): boolean =>
  (header('content-encoding')?.trim() || 'identity').toLowerCase() === 'identity'

/** Within the second of the change there may be another, under the same date (RFC 9110, 8.8.2.2). */
function tellingDate(header: Header): string | undefined {
  const date = header('last-modified')?.trim() ?? ''
  const ageMs = Date.parse(header('date') ?? '') - Date.parse(date)
  return /^[\x20-\x7e]+$/.test(date) && ageMs >= 1_000 ? date : undefined
}

export type Continuation =
  /** The rest follows. */
  | 'append'
  /** The file follows from its beginning. */
  | 'anew'
  /** There is no more. */
  | 'whole'
  /** Neither: the part is of no use, and the file is to be asked for without it. */
  | 'mismatch'

export interface PartialAnswer {
  readonly status: number
  readonly header: Header
}

/** What the answer to a request for the rest is. */
export function continuationOf(
  { bytes, about }: Extract<Plan, { kind: 'from' }>,
  { status, header }: PartialAnswer,
): Continuation {
  if (status === 200) return 'anew'
  if (status === 416) return isWhole(bytes, about, header) ? 'whole' : 'mismatch'
  const range = rangeOf(header)
  if (range === undefined || !isPlain(header) || isAnother(about, header)) return 'mismatch'
  const { from, to, totalBytes } = range
  const fits =
    from === bytes &&
    to >= bytes &&
    (totalBytes === undefined || to === totalBytes - 1) &&
    (totalBytes === undefined || about.totalBytes === undefined || totalBytes === about.totalBytes)
  return fits ? 'append' : 'mismatch'
}

/** The length of the whole file, as a 206 tells it; undefined when it does not. */
export const totalOf = (header: Header): number | undefined => rangeOf(header)?.totalBytes

function rangeOf(header: Header) {
  const [whole, from, to, total] =
    /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(header('content-range')?.trim() ?? '') ?? []
  if (whole === undefined) return undefined
  return { from: Number(from), to: Number(to), totalBytes: total === '*' ? undefined : Number(total) }
}

/**
 * A host that heeds `Range` and not `If-Range` may say itself that this is another file. An ETag has to be repeated in a
 * 206; a date need not be (RFC 9110, 15.3.7).
 */
function isAnother({ etag, lastModified }: About, header: Header): boolean {
  if (etag !== undefined) return header('etag')?.trim() !== etag
  const told = header('last-modified')?.trim()
  return told !== undefined && told !== lastModified
}

/**
 * A 416 to a request that began at the end. The part may be another file of the same length, so here the host has to
 * repeat by what it is known.
 */
function isWhole(bytes: number, about: About, header: Header): boolean {
  const told = header(about.etag === undefined ? 'last-modified' : 'etag')?.trim()
  return (
    about.totalBytes === undefined &&
    header('content-range')?.trim() === `bytes */${bytes}` &&
    told === validatorOf(about)
  )
}
