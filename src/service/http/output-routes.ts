/**
 * The outputs. Their URL is the secret, so they need no key and no rate limit. The URL is only looked up in the
 * database, and the file is found by the database's names: no path is built from a URL.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { FileStore } from '../files/contract.js'
import { StorageUnavailable } from '../files/storage-unavailable.js'
import { Refusal } from '../rules/refusal.js'
import { OUTPUTS_PATH, outputKey, type StoredOutput } from '../stored-run.js'
import { answerFor } from './conditional-request.js'

/**
 * An output may be HTML or SVG, whatever an engine left, and it is on the origin of the console: opened by its URL it runs no script,
 * and has an origin of its own.
 */
const POLICY =
  "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"

export interface OutputRoutes {
  readonly files: Pick<FileStore, 'find' | 'signedUrl'>
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
}

export async function addOutputRoutes(
  app: FastifyInstance,
  { files, findOutput }: OutputRoutes,
): Promise<void> {
  app.route<{ Params: { token: string; name: string }; Querystring: { download?: string } }>({
    method: ['GET', 'HEAD'],
    url: `${OUTPUTS_PATH}/:token/:name`,
    async handler(request, reply) {
      const output = await findOutput(request.params.token, request.params.name)
      if (output === undefined) throw new Refusal('not_found')
      const file = await files.find(outputKey(output))
      // `--retain` removes the file and keeps the row.
      if (file === undefined) throw new Refusal('gone')
      // The headers promise the bytes that were rendered, also to caches. The token is a secret, so the log has the hash.
      if (file.bytes !== output.bytes)
        throw new StorageUnavailable(
          `the output ${output.name} has ${file.bytes} of ${output.bytes} bytes (SHA-256 of all: ${output.sha256})`,
        )
      const contentDisposition = dispositionOf(output.name, request.query.download !== undefined)
      if (files.signedUrl !== undefined) {
        // A URL is signed for one method.
        const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
        const signed = { method, contentType: output.contentType, contentDisposition } as const
        return redirect(reply, await files.signedUrl(outputKey(output), signed))
      }

      const { bytes, modifiedAtMs } = file
      const etag = `"${output.sha256}"`
      // A range is defined for GET alone (RFC 9110, 14.2).
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
        'content-type': output.contentType,
        'content-disposition': contentDisposition,
        'cache-control': 'private, max-age=31536000, immutable',
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
      })
      if (answer.status === 304) return reply.send()
      const { start, end } = answer.status === 206 ? answer.range : { start: 0, end: bytes - 1 }
      if (answer.status === 206) reply.header('content-range', `bytes ${start}-${end}/${bytes}`)
      reply.header('content-length', end - start + 1)
      if (request.method === 'HEAD') return reply.send()
      return reply.send(await file.read(answer.status === 206 ? answer.range : undefined))
    },
  })
}

/**
 * With `?download` a browser saves the file, also after a redirect to another origin, where it ignores the `download` attribute of a
 * link. Both have the name (RFC 6266; the second form is for names that are not plain ASCII).
 */
function dispositionOf(name: string, isDownload: boolean): string {
  const plain = name.replace(/[^\w. ()-]/g, '_')
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return `${isDownload ? 'attachment' : 'inline'}; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** Not to be cached: the URL is valid for an hour. */
const redirect = (reply: FastifyReply, url: string): FastifyReply =>
  reply.header('cache-control', 'no-store').redirect(url, 302)
