/** Sends a file of a file store: an output, or a reference image. */
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ByteRange, type FileReader, StorageUnavailable } from '../files/contract.js'
import { Refusal } from '../rules/refusal.js'
import type { StoredFile } from '../store/run.js'

/**
 * Content-Security-Policy of stored files. A file may be HTML or SVG, on the console's origin. When a user opens its
 * URL, it must not run scripts, and `sandbox` gives it a separate origin.
 */
const FILE_POLICY =
  "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"

/**
 * Sends the file, the requested range of it, or a redirect to its signed URL. Throws `Refusal` (410, 416), and
 * `StorageUnavailable` for a file of another size: the headers describe the recorded bytes, and caches rely on them.
 */
export async function sendStoredFile(
  request: FastifyRequest,
  reply: FastifyReply,
  files: FileReader,
  { key, contentType, bytes, sha256, name }: StoredFile,
): Promise<FastifyReply> {
  const file = await files.find(key)
  // `--retain` removes the file but keeps the row.
  if (file === undefined) throw new Refusal('gone')
  // Log the hash, since the key of an output is a secret.
  if (file.bytes !== bytes)
    throw new StorageUnavailable(`${name} has ${file.bytes} of ${bytes} bytes (SHA-256 of all: ${sha256})`)
  // A signed URL does not answer HEAD.
  const isHead = request.method === 'HEAD'
  // Do not let caches keep the redirect: the signed URL expires after an hour.
  if (files.signedUrl !== undefined && !isHead)
    return reply.header('cache-control', 'no-store').redirect(await files.signedUrl(key, contentType), 302)

  const etag = `"${sha256}"`
  reply.headers({
    etag,
    'accept-ranges': 'bytes',
    'content-type': contentType,
    'cache-control': 'private, max-age=31536000, immutable',
    'content-security-policy': FILE_POLICY,
    'x-content-type-options': 'nosniff',
  })
  if (isKnownTag(request.headers, etag)) return reply.code(304).send()
  // Ranges are defined only for GET (RFC 9110, 14.2).
  const range = isHead ? undefined : rangeOf(request.headers, etag, bytes)
  if (range === 'outside') {
    reply.header('content-range', `bytes */${bytes}`)
    throw new Refusal('range_not_satisfiable')
  }
  if (range !== undefined)
    reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${bytes}`)
  reply.header('content-length', range === undefined ? bytes : range.end - range.start + 1)
  return reply.send(isHead ? Readable.from([]) : await file.read(range))
}

/** Whether the client has the file with this strong ETag. */
export const isKnownTag = ({ 'if-none-match': tags = '' }: IncomingHttpHeaders, etag: string): boolean =>
  tags.split(',').some((tag) => [etag, `W/${etag}`, '*'].includes(tag.trim()))

/**
 * Returns the one byte range that is asked for. Undefined: the whole file is sent, also for several ranges, another unit, an
 * invalid range, and a client that has a part of another file (`If-Range`).
 */
export function rangeOf(
  { range = '', 'if-range': ifRange }: IncomingHttpHeaders,
  etag: string,
  bytes: number,
): ByteRange | 'outside' | undefined {
  const [, first = '', last = ''] = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(range) ?? []
  const isSuffix = first === ''
  const isInvalid = isSuffix ? last === '' : last !== '' && Number(last) < Number(first)
  if (isInvalid || (ifRange ?? etag) !== etag) return undefined
  const start = isSuffix ? Math.max(0, bytes - Number(last)) : Number(first)
  const end = isSuffix || last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  return start > end ? 'outside' : { start, end }
}
