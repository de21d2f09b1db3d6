/** The files of the page. They are read once, at the start of the service, and sent from memory. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Page, PageFile } from '../../console/page.js'
import { bestCoding } from '../../rules/content-coding.js'
import { pagePolicy } from '../../rules/page-policy.js'
import { Refusal } from '../../rules/refusal.js'
import { isKnownTag } from '../conditional-request.js'

export interface PageRoutes {
  readonly page: Page
  readonly publicUrl: string | undefined
  /** Where pictures and videos come from, beside the service: the origin of a bucket. */
  outputsOrigin(): Promise<string | undefined>
}

export async function addPageRoutes(
  app: FastifyInstance,
  { page, publicUrl, outputsOrigin }: PageRoutes,
): Promise<void> {
  app.get('/', async (request, reply) => {
    reply.headers({
      'cache-control': 'no-cache',
      'content-security-policy': pagePolicy([publicUrl, await outputsOrigin()]),
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy':
        'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
    })
    return send(request, reply, page.index)
  })
  app.get<{ Params: { name: string } }>('/assets/:name', async (request, reply) => {
    const file = page.assets.get(request.params.name)
    if (file === undefined) throw new Refusal('not_found')
    // The name has a hash of the content.
    reply.header('cache-control', 'public, max-age=31536000, immutable')
    return send(request, reply, file)
  })
}

function send({ headers }: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const coding = bestCoding(headers['accept-encoding'], [...file.encoded.keys()])
  const { bytes, etag } = (coding && file.encoded.get(coding)) || file
  reply.headers({
    etag,
    'content-type': file.contentType,
    'x-content-type-options': 'nosniff',
    ...(file.encoded.size > 0 && { vary: 'accept-encoding' }),
  })
  const known = headers['if-none-match']
  if (known !== undefined && isKnownTag(known, etag)) return reply.code(304).send()
  if (coding !== undefined) reply.header('content-encoding', coding)
  return reply.send(bytes)
}
