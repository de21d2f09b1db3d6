/** The small JSON bodies of the console's requests. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { invalidBody, type SchemaProblem } from '../../rules/console-bodies.js'
import { Refusal } from '../../rules/refusal.js'
import { type BodyLimits, withBody } from '../request-body.js'
import { acceptAnyContentType } from '../run-routes.js'

const MAX_BYTES = 65_536

/** Bodies of this size are free in the budget, so they need no owner. */
const OWNER = 0

/** Reads the bodies of this scope as JSON, whatever their content type. An empty one is an empty object. */
export function readJsonBodies(app: FastifyInstance, limits: BodyLimits): void {
  acceptAnyContentType(app)
  app.addContentTypeParser('*', (request: FastifyRequest) =>
    withBody(request.raw, { ...limits, maxBytes: MAX_BYTES }, OWNER, async (body) =>
      jsonOf(Buffer.concat(body)),
    ),
  )
  app.addHook('preValidation', async (request) => {
    request.body ??= {}
  })
  app.setSchemaErrorFormatter((problems) => invalidBody(problems as readonly SchemaProblem[]))
}

function jsonOf(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return {}
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown
  } catch {
    throw new Refusal('invalid_json')
  }
}
