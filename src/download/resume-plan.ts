/**
 * Decides whether a download can be resumed. Pure, tested by table. The rest of a changed file must never be appended
 * to an old part, so the host must confirm that the file is unchanged (RFC 9110, 13.1.5 and 14.4).
 */
import { isEncoded } from '../host/response-body.js'

/** Identifies the file that a part belongs to. Does not contain the URL, which may contain a secret. */
export interface FileVersion {
  /** A strong ETag: a weak one does not identify bytes. */
  readonly etag: string
  readonly totalBytes: number
}

type HeaderReader = (name: string) => string | undefined

const STRONG_ETAG = /^"[\x21\x23-\x7e]*"$/

/**
 * Returns the version from the headers of a full response. Undefined without a strong ETag or a length, and if the body is
 * encoded, so that it is not the bytes of the file: the download then cannot be resumed.
 */
export function versionOf(header: HeaderReader): FileVersion | undefined {
  const etag = header('etag')?.trim() ?? ''
  const totalBytes = declaredLength(header)
  const isKnown = STRONG_ETAG.test(etag) && !isEncoded(header)
  return isKnown && totalBytes !== undefined ? { etag, totalBytes } : undefined
}

/** Returns `Content-Length`; undefined if it is missing or invalid. */
export function declaredLength(header: HeaderReader): number | undefined {
  const length = header('content-length')?.trim() ?? ''
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
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

/**
 * Decides how to continue after the response to a request for the bytes from `bytes`. Some hosts support `Range`, but not
 * `If-Range`: a 206 must repeat the ETag (RFC 9110, 15.3.7).
 */
export function continuationOf(
  { etag, totalBytes }: FileVersion,
  bytes: number,
  { status, header }: PartialAnswer,
): Continuation {
  if (status === 200) return 'restart'
  const range = header('content-range')?.trim().toLowerCase()
  const isRest = status === 206 && range === `bytes ${bytes}-${totalBytes - 1}/${totalBytes}`
  return isRest && !isEncoded(header) && header('etag')?.trim() === etag ? 'append' : 'mismatch'
}
