/** The routes of the two endpoints (section 4). */
import type { FastifyInstance } from 'fastify'
import { RUNS_PATH } from '../../protocol/routes.js'
import type { Endpoints } from '../endpoints.js'
import type { Caller } from '../rules/caller.js'
import { runObject } from '../stored-run.js'
import { type BodyLimits, withBody } from './request-body.js'

export interface RunRoutes {
  readonly endpoints: Endpoints
  readonly bodyLimits: BodyLimits
  readonly logPrompts: boolean
  /** The start of all URLs of the service, without a slash at the end. */
  baseUrl(): string
}

export async function addRunRoutes(
  app: FastifyInstance,
  { endpoints, bodyLimits, logPrompts, baseUrl }: RunRoutes,
): Promise<void> {
  app.decorateRequest('caller')

  // Fastify does not read the body: the handler does, once the caller is known, whatever the content type.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))

  app.addHook('onRequest', async (request) => {
    if ('content-type' in request.raw.headers)
      request.raw.headers['content-type'] = 'application/octet-stream'
    request.setDecorator<Caller>(
      'caller',
      await endpoints.admit(request.headers.authorization, () => request.ip),
    )
  })

  app.post(RUNS_PATH, async (request, reply) => {
    const caller = request.getDecorator<Caller>('caller')
    const run = await withBody(request.raw, bodyLimits, caller.accountId, (body) =>
      endpoints.create(caller, body),
    )
    app.log.info(
      {
        run: run.id,
        kind: run.kind,
        account: caller.accountId,
        key: caller.keyId,
        ...(logPrompts && { prompt: run.input.prompt }),
      },
      'run accepted',
    )
    reply
      .code(201)
      .header('location', `${baseUrl()}${RUNS_PATH}/${run.id}`)
      .header('cache-control', 'no-store')
    return runObject(run, baseUrl())
  })

  app.get<{ Params: { id: string } }>(`${RUNS_PATH}/:id`, async (request, reply) => {
    const run = await endpoints.findRun(request.getDecorator<Caller>('caller'), request.params.id)
    reply.header('cache-control', 'no-store')
    return runObject(run, baseUrl())
  })
}
