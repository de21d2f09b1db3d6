/** Thumbnails are asked for by the elements of the page, so the browser keeps them. */
import type { FastifyInstance } from 'fastify'
import { CONSOLE_PATHS } from '../../../protocol/console.js'
import type { Console } from '../../console/index.js'
import { Refusal } from '../../rules/refusal.js'
import { isKnownTag } from '../conditional-request.js'
import { sessionOf } from './visitor.js'

export async function addThumbnailRoute(
  app: FastifyInstance,
  { limits, thumbnails }: Pick<Console, 'limits' | 'thumbnails'>,
): Promise<void> {
  app.addHook('onRequest', async (request) => limits.countThumbnail(sessionOf(request).user.id))
  app.get<{ Params: { id: string } }>(CONSOLE_PATHS.thumbnail, async (request, reply) => {
    const closed = new AbortController()
    const onClose = () => closed.abort(new Refusal('bad_request', 'The connection was closed.'))
    reply.raw.once('close', onClose)
    const { etag, read } = await thumbnails.find(sessionOf(request).user.accountId, request.params.id)
    const known = request.headers['if-none-match']
    const isKnown = known !== undefined && isKnownTag(known, etag)
    const bytes = isKnown ? undefined : await read(closed.signal)
    reply.headers({
      etag,
      'cache-control': 'private, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
    return bytes === undefined ? reply.code(304).send() : reply.type('image/webp').send(bytes)
  })
}
