/**
 * The outputs. Their URL is the secret, so they need no key and no rate limit. The URL is only looked up in the
 * database, and the file is found by the database's names: no path is built from a URL.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { FileStore } from '../files/contract.js'
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
  app.route<{ Params: { token: string; name: string } }>({
    method: ['GET', 'HEAD'],
    url: `${OUTPUTS_PATH}/:token/:name`,
    async handler(request, reply) {
      const output = await findOutput(request.params.token, request.params.name)
      if (output === undefined) throw new Refusal('not_found')
      const file = await files.find(outputKey(output))
      // `--retain` removes the file and keeps the row.
      if (file === undefined) throw new Refusal('gone')
      if (files.signedUrl !== undefined) {
        // A URL is signed for one method.
        const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
        const signed = { method, contentType: output.contentType } as const
        return redirect(reply, await files.signedUrl(outputKey(output), signed))
      }

      const { bytes, modifiedAtMs } = file
      const etag = `"${output.sha256}"`
      const answer = answerFor(request.headers, { etag, modifiedAtMs, bytes })
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

/** Not to be cached: the URL is valid for an hour. */
const redirect = (reply: FastifyReply, url: string): FastifyReply =>
  reply.header('cache-control', 'no-store').redirect(url, 302)
