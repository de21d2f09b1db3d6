/**
 * Whether a download can be resumed. Pure, tested by table. The rest of a changed file must never be appended to an old
 * part, so the host has to confirm that the file is unchanged (RFC 9110, 13.1.5 and 14.4).
 */
import { HEAD_BYTES } from './file-kind.js'

/** Identifies the version of the file that a part belongs to. Without its URL, which may contain a secret. */
export interface PartMetadata {
  readonly etag?: string | undefined
  /** Only where it distinguishes versions: see `preciseDate`. */
  readonly lastModified?: string | undefined
  readonly totalBytes?: number | undefined
  readonly contentType?: string | undefined
}

type ResumePlan =
  | { readonly kind: 'restart' }
  /** All bytes are there already. */
  | { readonly kind: 'complete' }
  | {
      readonly kind: 'resume'
      readonly bytes: number
      readonly ifRange: string
      readonly metadata: PartMetadata
    }

type HeaderReader = (name: string) => string | undefined

const STRONG_ETAG = /^"[\x21\x23-\x7e]*"$/

/**
 * A strong ETag or, where the host gives no ETag, the date of the last change. A weak ETag does not identify bytes, and
 * the date is not used beside it (RFC 9110, 13.1.5).
 */
export const validatorOf = ({ etag, lastModified }: PartMetadata): string | undefined =>
  etag === undefined ? lastModified : STRONG_ETAG.test(etag) ? etag : undefined

/** What to request when `bytes` bytes are there. */
export function resumePlan(metadata: PartMetadata | undefined, bytes: number): ResumePlan {
  const ifRange = metadata === undefined ? undefined : validatorOf(metadata)
  if (metadata === undefined || ifRange === undefined || bytes === 0) return { kind: 'restart' }
  const { totalBytes } = metadata
  if (totalBytes === bytes) return { kind: 'complete' }
  if (totalBytes !== undefined && bytes > totalBytes) return { kind: 'restart' }
  // Too few to detect the file type, and cheap to download again.
  if (bytes < HEAD_BYTES) return { kind: 'restart' }
  return { kind: 'resume', bytes, ifRange, metadata }
}

/** How many of the bytes need not be downloaded again. */
export const usefulBytes = (metadata: PartMetadata | undefined, bytes: number): number =>
  resumePlan(metadata, bytes).kind === 'restart' ? 0 : bytes

/** From the headers of a full response; undefined when the body is encoded and so not the bytes of the file. */
export function metadataOf(header: HeaderReader): PartMetadata | undefined {
  if (!isPlain(header)) return undefined
  return {
    etag: header('etag')?.trim(),
    lastModified: preciseDate(header),
    totalBytes: declaredLength(header),
    contentType: header('content-type'),
  }
}

/** `Content-Length`; undefined when it is absent or invalid. */
export function declaredLength(header: HeaderReader): number | undefined {
  const length = header('content-length')?.trim() ?? ''
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

const isPlain = (header: HeaderReader): boolean =>
  (header('content-encoding')?.trim() || 'identity').toLowerCase() === 'identity'

/** A second change within the same second would have the same date (RFC 9110, 8.8.2.2). */
function preciseDate(header: HeaderReader): string | undefined {
  const date = header('last-modified')?.trim() ?? ''
  const ageMs = Date.parse(header('date') ?? '') - Date.parse(date)
  return /^[\x20-\x7e]+$/.test(date) && ageMs >= 1_000 ? date : undefined
}

type Continuation =
  /** The response is the rest. */
  | 'append'
  /** The response is the whole file. */
  | 'restart'
  /** The part is complete already. */
  | 'complete'
  /** Discard the part and request the whole file. */
  | 'mismatch'

interface PartialAnswer {
  readonly status: number
  readonly header: HeaderReader
}

/** What the response to a range request means. */
export function continuationOf(
  { bytes, metadata }: Extract<ResumePlan, { kind: 'resume' }>,
  { status, header }: PartialAnswer,
): Continuation {
  if (status === 200) return 'restart'
  if (status === 416) return isWhole(bytes, metadata, header) ? 'complete' : 'mismatch'
  const range = rangeOf(header)
  if (range === undefined || !isPlain(header) || isOtherFile(metadata, header)) return 'mismatch'
  const { from, to, totalBytes } = range
  const fits =
    from === bytes &&
    to >= bytes &&
    (totalBytes === undefined || to === totalBytes - 1) &&
    (totalBytes === undefined || metadata.totalBytes === undefined || totalBytes === metadata.totalBytes)
  return fits ? 'append' : 'mismatch'
}

/** The length of the whole file by a 206's Content-Range; undefined when it does not say. */
export const totalOf = (header: HeaderReader): number | undefined => rangeOf(header)?.totalBytes

function rangeOf(header: HeaderReader) {
  const [whole, from, to, total] =
    /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(header('content-range')?.trim() ?? '') ?? []
  if (whole === undefined) return undefined
  return { from: Number(from), to: Number(to), totalBytes: total === '*' ? undefined : Number(total) }
}

/**
 * For hosts that support `Range` but not `If-Range`. A 206 must repeat the ETag; it need not repeat the date (RFC 9110,
 * 15.3.7).
 */
function isOtherFile({ etag, lastModified }: PartMetadata, header: HeaderReader): boolean {
  if (etag !== undefined) return header('etag')?.trim() !== etag
  const sent = header('last-modified')?.trim()
  return sent !== undefined && sent !== lastModified
}

/**
 * A 416 to a range that starts at the end of the file. The file may be a different one of the same length, so the host
 * has to repeat the validator.
 */
function isWhole(bytes: number, metadata: PartMetadata, header: HeaderReader): boolean {
  const sent = header(metadata.etag === undefined ? 'last-modified' : 'etag')?.trim()
  return (
    metadata.totalBytes === undefined &&
    header('content-range')?.trim() === `bytes */${bytes}` &&
    sent === validatorOf(metadata)
  )
}
