/**
 * The outputs. Their URL is the secret, so they need no key and no rate limit. The URL is only looked up in the
 * database, and the file is opened by the database's names: no path is built from a URL.
 */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import staticFiles from '@fastify/static'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../rules/refusal.js'
import { OUTPUTS_PATH, type StoredOutput } from '../stored-run.js'

export interface OutputRoutes {
  readonly folder: string
  findOutput(token: string, name: string): Promise<StoredOutput | undefined>
}

export async function addOutputRoutes(
  app: FastifyInstance,
  { folder, findOutput }: OutputRoutes,
): Promise<void> {
  await app.register(staticFiles, {
    root: folder,
    serve: false,
    etag: false,
    cacheControl: false,
    contentType: false,
    index: false,
  })

  app.get<{ Params: { token: string; name: string } }>(
    `${OUTPUTS_PATH}/:token/:name`,
    async (request, reply) => {
      const output = await findOutput(request.params.token, request.params.name)
      if (output === undefined) throw new Refusal('not_found')
      // `--retain` removes the file and keeps the row.
      if (!(await isThere(join(folder, output.token, output.name)))) throw new Refusal('gone')
      const etag = `"${output.sha256}"`
      reply.headers({
        etag,
        'content-type': output.contentType,
        'cache-control': 'private, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
      })
      if (evaluateEtags(request, etag) === 'unchanged') return reply.code(304).send()
      return reply.sendFile(`${output.token}/${output.name}`, folder)
    },
  )
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/**
 * Evaluates the conditions with an ETag: the file server would compare them with its own weak one (`W/"size-mtime"`),
 * and a weak ETag does not allow a resumed download (RFC 9110, 13.1.5). Evaluated headers are removed; ranges and dates
 * are left to the file server.
 */
function evaluateEtags(request: FastifyRequest, etag: string): 'unchanged' | 'continue' {
  const headers = request.raw.headers
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch, 'if-range': ifRange } = headers
  if (ifMatch !== undefined && namesTag(ifMatch, etag)) delete headers['if-match']
  if (ifNoneMatch !== undefined) {
    if (namesTag(ifNoneMatch, etag) || namesTag(ifNoneMatch, `W/${etag}`)) return 'unchanged'
    // With an If-None-Match the date is ignored (RFC 9110, 13.1.3).
    delete headers['if-none-match']
    delete headers['if-modified-since']
  }
  if (typeof ifRange === 'string' && ifRange.includes('"')) {
    delete headers['if-range']
    if (ifRange.trim() !== etag) delete headers.range
  }
  return 'continue'
}

/** Whether an `If-Match` or `If-None-Match` names this ETag. */
export const namesTag = (header: string, etag: string): boolean =>
  header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag)
