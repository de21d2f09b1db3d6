/**
 * Status of the response to a GET or HEAD of a file, from the request's conditions and range (RFC 9110, sections 13 and
 * 14). Pure. The ETag is strong, so that a download can be resumed.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ByteRange } from '../files/contract.js'

interface Representation {
  /** Strong ETag, including its quotes. */
  readonly etag: string
  readonly modifiedAtMs: number
  readonly bytes: number
}

type FileAnswer =
  | { readonly status: 200 | 304 | 412 | 416 }
  | { readonly status: 206; readonly range: ByteRange }

/** Checks the conditions in the order of RFC 9110, 13.2.2: an ETag condition takes precedence over a date condition. */
export function answerFor(headers: IncomingHttpHeaders, file: Representation): FileAnswer {
  const {
    'if-match': ifMatch,
    'if-unmodified-since': ifUnmodifiedSince,
    'if-none-match': ifNoneMatch,
    'if-modified-since': ifModifiedSince,
    'if-range': ifRange,
    range,
  } = headers
  const isMatch =
    ifMatch === undefined
      ? isUnmodifiedSince(ifUnmodifiedSince, file) !== false
      : namesTag(ifMatch, file.etag)
  if (!isMatch) return { status: 412 }
  const isKnown =
    ifNoneMatch === undefined
      ? isUnmodifiedSince(ifModifiedSince, file) === true
      : isKnownTag(headers, file.etag)
  if (isKnown) return { status: 304 }
  return range === undefined || !isSameFile(ifRange, file) ? { status: 200 } : rangeAnswer(range, file.bytes)
}

/**
 * Compares whole seconds, since HTTP dates have no fractions. Returns undefined for an invalid date, which is ignored.
 */
function isUnmodifiedSince(date: string | undefined, { modifiedAtMs }: Representation): boolean | undefined {
  const ms = Date.parse(date ?? '')
  return Number.isNaN(ms) ? undefined : Math.floor(modifiedAtMs / 1_000) * 1_000 <= ms
}

function isSameFile(ifRange: string | string[] | undefined, file: Representation): boolean {
  if (typeof ifRange !== 'string') return true
  return ifRange.includes('"') ? ifRange.trim() === file.etag : isUnmodifiedSince(ifRange, file) === true
}

/** Whether `If-None-Match` contains this ETag, strong or weak. */
export const isKnownTag = ({ 'if-none-match': tags }: IncomingHttpHeaders, etag: string): boolean =>
  tags !== undefined && namesTag(tags.replaceAll('W/', ''), etag)

const namesTag = (header: string, etag: string): boolean =>
  header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag)

/** Handles one byte range. For several ranges, another unit, or an invalid range, the response is the whole file. */
function rangeAnswer(header: string, bytes: number): FileAnswer {
  const [, first = '', last = ''] = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header) ?? []
  const isSuffix = first === ''
  if (isSuffix ? last === '' : last !== '' && Number(last) < Number(first)) return { status: 200 }
  const start = isSuffix ? Math.max(0, bytes - Number(last)) : Number(first)
  const end = isSuffix || last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  return start > end ? { status: 416 } : { status: 206, range: { start, end } }
}
