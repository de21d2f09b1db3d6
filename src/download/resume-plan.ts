/**
 * Decides whether a download can be resumed. Pure, tested by table. The rest of a changed file must never be appended
 * to an old part, so the host must confirm that the file is unchanged (RFC 9110, 13.1.5 and 14.4).
 */
import { isEncoded } from '../host/content-encoding.js'

/** Identifies the version of the file that a part belongs to. Does not contain the URL, which may contain a secret. */
export interface PartMetadata {
  readonly etag?: string | undefined
  /** Set only if it distinguishes versions: see `preciseDate`. */
  readonly lastModified?: string | undefined
  readonly totalBytes?: number | undefined
}

type ResumePlan =
  | { readonly kind: 'restart' }
  | {
      readonly kind: 'resume'
      readonly bytes: number
      readonly ifRange: string
      readonly metadata: PartMetadata
    }

type HeaderReader = (name: string) => string | undefined

const STRONG_ETAG = /^"[\x21\x23-\x7e]*"$/

/**
 * Returns a strong ETag or, if the host sends no ETag, the date of the last change. A weak ETag does not identify
 * bytes, and the date must not be used together with a weak ETag (RFC 9110, 13.1.5).
 */
const validatorOf = ({ etag, lastModified }: PartMetadata): string | undefined =>
  etag === undefined ? lastModified : STRONG_ETAG.test(etag) ? etag : undefined

/** Decides what to request if the part has `bytes` bytes. */
export function resumePlan(metadata: PartMetadata | undefined, bytes: number): ResumePlan {
  const ifRange = metadata === undefined ? undefined : validatorOf(metadata)
  if (metadata === undefined || ifRange === undefined || bytes === 0) return { kind: 'restart' }
  const { totalBytes } = metadata
  if (totalBytes !== undefined && bytes >= totalBytes) return { kind: 'restart' }
  return { kind: 'resume', bytes, ifRange, metadata }
}

/**
 * Returns the metadata from the headers of a full response; undefined if the body is encoded, so that it is not the
 * bytes of the file.
 */
export function metadataOf(header: HeaderReader): PartMetadata | undefined {
  if (isEncoded(header)) return undefined
  return {
    etag: header('etag')?.trim(),
    lastModified: preciseDate(header),
    totalBytes: declaredLength(header),
  }
}

/** Returns `Content-Length`; undefined if it is missing or invalid. */
export function declaredLength(header: HeaderReader): number | undefined {
  const length = header('content-length')?.trim() ?? ''
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/**
 * Returns the date of the last change if it is at least one second old: a second change within the same second would
 * have the same date (RFC 9110, 8.8.2.2).
 */
function preciseDate(header: HeaderReader): string | undefined {
  const date = header('last-modified')?.trim() ?? ''
  const ageMs = Date.parse(header('date') ?? '') - Date.parse(date)
  return /^[\x20-\x7e]+$/.test(date) && ageMs >= 1_000 ? date : undefined
}

type Continuation =
  /** The response contains the rest of the file. */
  | 'append'
  /** The response contains the whole file. */
  | 'restart'
  /** Discard the part and request the whole file. */
  | 'mismatch'

interface PartialAnswer {
  readonly status: number
  readonly header: HeaderReader
}

/** Decides how to continue after the response to a range request. */
export function continuationOf(
  { bytes, metadata }: Extract<ResumePlan, { kind: 'resume' }>,
  { status, header }: PartialAnswer,
): Continuation {
  if (status === 200) return 'restart'
  if (status === 416) return 'mismatch'
  const range = rangeOf(header)
  if (range === undefined || isEncoded(header) || isOtherFile(metadata, header)) return 'mismatch'
  const { from, to, totalBytes } = range
  const fits =
    from === bytes &&
    to >= bytes &&
    (totalBytes === undefined || to === totalBytes - 1) &&
    (totalBytes === undefined || metadata.totalBytes === undefined || totalBytes === metadata.totalBytes)
  return fits ? 'append' : 'mismatch'
}

/** Returns the length of the whole file from the Content-Range of a 206; undefined if it is unknown. */
export const totalOf = (header: HeaderReader): number | undefined => rangeOf(header)?.totalBytes

function rangeOf(header: HeaderReader) {
  const [whole, from, to, total] =
    /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(header('content-range')?.trim() ?? '') ?? []
  if (whole === undefined) return undefined
  return { from: Number(from), to: Number(to), totalBytes: total === '*' ? undefined : Number(total) }
}

/**
 * Detects a changed file, for hosts that support `Range` but not `If-Range`. A 206 must repeat the ETag, but not the
 * date (RFC 9110, 15.3.7).
 */
function isOtherFile({ etag, lastModified }: PartMetadata, header: HeaderReader): boolean {
  if (etag !== undefined) return header('etag')?.trim() !== etag
  const sent = header('last-modified')?.trim()
  return sent !== undefined && sent !== lastModified
}
