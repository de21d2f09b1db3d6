/**
 * The outputs. Their address is the secret, so they need no key and count against no limit. A file is looked up by
 * what the address says and opened by what the database says: no path is ever made from an address.
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
      // The row outlives the file, which `--retain` removes.
      if (!(await isThere(join(folder, output.token, output.name)))) throw new Refusal('gone')
      const etag = `"${output.sha256}"`
      reply.headers({
        etag,
        'content-type': output.contentType,
        'cache-control': 'private, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
      })
      if (judgeByEtag(request, etag) === 'unchanged') return reply.code(304).send()
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
 * The conditions that name an ETag, settled here: the file server would compare them with a weak one of its own
 * (`W/"size-mtime"`), and by a weak one no download may be resumed (RFC 9110, 13.1.5). What is settled is taken away;
 * ranges and dates stay with the file server.
 */
function judgeByEtag(request: FastifyRequest, etag: string): 'unchanged' | 'go on' {
  const headers = request.raw.headers
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch, 'if-range': ifRange } = headers
  if (ifMatch !== undefined && namesTag(ifMatch, etag)) delete headers['if-match']
  if (ifNoneMatch !== undefined) {
    if (namesTag(ifNoneMatch, etag) || namesTag(ifNoneMatch, `W/${etag}`)) return 'unchanged'
    // When there is an ETag to go by, the date does not count (RFC 9110, 13.1.3).
    delete headers['if-none-match']
    delete headers['if-modified-since']
  }
  if (typeof ifRange === 'string' && ifRange.includes('"')) {
    delete headers['if-range']
    if (ifRange.trim() !== etag) delete headers.range
  }
  return 'go on'
}

const namesTag = (header: string, etag: string): boolean =>
  header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag)
