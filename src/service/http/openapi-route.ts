/** The OpenAPI document: without a key and without a rate limit, as it contains nothing about accounts or runs. */
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Kind } from '../../protocol/models.js'
import { OPENAPI_PATH } from '../../protocol/routes.js'
import { isKnownTag } from './conditional-request.js'

export interface OpenapiRoute {
  readonly models: Readonly<Record<Kind, string>>
  readonly hasConsole: boolean
  /** The start of all URLs of the service; it does not change once requests arrive over a port. */
  baseUrl(): string
}

interface Sent {
  readonly baseUrl: string
  readonly bytes: Buffer
  readonly etag: string
}

export async function addOpenapiRoute(
  app: FastifyInstance,
  { models, hasConsole, baseUrl }: OpenapiRoute,
): Promise<void> {
  let sent: Sent | undefined

  async function current(): Promise<Sent> {
    if (sent?.baseUrl === baseUrl()) return sent
    // Loaded at the first request: most services are never asked for it.
    const { openapiText } = await import('../openapi/index.js')
    const bytes = Buffer.from(openapiText({ models, hasConsole, baseUrl: baseUrl() }))
    const etag = `"${createHash('sha256').update(bytes).digest('hex')}"`
    sent = { baseUrl: baseUrl(), bytes, etag }
    return sent
  }

  app.get(OPENAPI_PATH, async (request, reply) => {
    const { bytes, etag } = await current()
    reply.headers({ etag, 'cache-control': 'no-cache' })
    const known = request.headers['if-none-match']
    if (known !== undefined && isKnownTag(known, etag)) return reply.code(304).send()
    return reply.type('application/json; charset=utf-8').send(bytes)
  })
}
