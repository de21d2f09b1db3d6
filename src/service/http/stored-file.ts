/** Sends a file of a file store: an output, or a reference image. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type FileReader, StorageUnavailable } from '../files/contract.js'
import { Refusal } from '../rules/refusal.js'
import type { StoredFile } from '../stored-run.js'
import { answerFor } from './conditional-request.js'

/**
 * Content-Security-Policy of stored files. A file may be HTML or SVG, on the console's origin. When a user opens its
 * URL, it must not run scripts, and `sandbox` gives it a separate origin.
 */
const FILE_POLICY =
  "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"

/**
 * Sends the file, the requested range of it, or a redirect to its signed URL. With `isDownload`, a browser saves it.
 * Throws `Refusal` (410, 412, 416), and `StorageUnavailable` for a file of another size: the headers describe the
 * recorded bytes, and caches rely on them.
 */
export async function sendStoredFile(
  request: FastifyRequest,
  reply: FastifyReply,
  files: FileReader,
  { key, contentType, bytes, sha256, name }: StoredFile,
  isDownload = false,
): Promise<FastifyReply> {
  const file = await files.find(key)
  // `--retain` removes the file but keeps the row.
  if (file === undefined) throw new Refusal('gone')
  // Log the hash, since the key of an output is a secret.
  if (file.bytes !== bytes)
    throw new StorageUnavailable(`${name} has ${file.bytes} of ${bytes} bytes (SHA-256 of all: ${sha256})`)
  const contentDisposition = dispositionOf(name, isDownload)
  if (files.signedUrl !== undefined) {
    // A signed URL is valid for one method.
    const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
    const url = await files.signedUrl(key, { method, contentType, contentDisposition })
    // Do not let caches keep the redirect: the signed URL expires after an hour.
    return reply.header('cache-control', 'no-store').redirect(url, 302)
  }

  const { modifiedAtMs } = file
  const etag = `"${sha256}"`
  // Ranges are defined only for GET (RFC 9110, 14.2).
  const headers = request.method === 'HEAD' ? { ...request.headers, range: undefined } : request.headers
  const answer = answerFor(headers, { etag, modifiedAtMs, bytes })
  if (answer.status === 412) throw new Refusal('precondition_failed')
  if (answer.status === 416) {
    reply.header('content-range', `bytes */${bytes}`)
    throw new Refusal('range_not_satisfiable')
  }
  reply.code(answer.status).headers({
    etag,
    'last-modified': new Date(modifiedAtMs).toUTCString(),
    'accept-ranges': 'bytes',
    'content-type': contentType,
    'content-disposition': contentDisposition,
    'cache-control': 'private, max-age=31536000, immutable',
    'content-security-policy': FILE_POLICY,
    'x-content-type-options': 'nosniff',
  })
  if (answer.status === 304) return reply.send()
  const { start, end } = answer.status === 206 ? answer.range : { start: 0, end: bytes - 1 }
  if (answer.status === 206) reply.header('content-range', `bytes ${start}-${end}/${bytes}`)
  reply.header('content-length', end - start + 1)
  if (request.method === 'HEAD') return reply.send()
  return reply.send(await file.read(answer.status === 206 ? answer.range : undefined))
}

/**
 * With `attachment`, a browser saves the file, even after a redirect to another origin, where it ignores the `download`
 * attribute of a link. The header has the name in both forms of RFC 6266; `filename*` is for names that are not plain
 * ASCII.
 */
function dispositionOf(name: string, isDownload: boolean): string {
  const plain = name.replace(/[^\w. ()-]/g, '_')
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return `${isDownload ? 'attachment' : 'inline'}; filename="${plain}"; filename*=UTF-8''${encoded}`
}
