/** The routes of the two endpoints (section 4). */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { RUNS_PATH } from '../../protocol/routes.js'
import type { Endpoints } from '../endpoints.js'
import type { Caller } from '../rules/caller.js'
import { runObject, type StoredRun } from '../stored-run.js'
import { type BodyLimits, withBody } from './request-body.js'

export interface RunRoutes {
  readonly endpoints: Endpoints
  readonly bodyLimits: BodyLimits
  readonly logPrompts: boolean
  /** The start of all URLs of the service, without a slash at the end. */
  baseUrl(): string
}

/** Fastify does not read the body: the handler does, once the caller is known, whatever the content type. */
export function leaveBodiesUnread(app: FastifyInstance): void {
  acceptAnyContentType(app)
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
}

/** The body of every request goes to the parser for `*`. Call it before other hooks are added. */
export function acceptAnyContentType(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async ({ raw }) => {
    if ('content-type' in raw.headers) raw.headers['content-type'] = 'application/octet-stream'
  })
}

/** The log, status and headers of an accepted create. `by`: who created it. */
export function announceRun(
  app: FastifyInstance,
  reply: FastifyReply,
  run: StoredRun,
  by: object,
  { logPrompts, baseUrl }: Pick<RunRoutes, 'logPrompts' | 'baseUrl'>,
): void {
  app.log.info(
    { run: run.id, kind: run.kind, ...by, ...(logPrompts && { prompt: run.input.prompt }) },
    'run accepted',
  )
  reply.code(201).header('location', `${baseUrl()}${RUNS_PATH}/${run.id}`).header('cache-control', 'no-store')
}

export async function addRunRoutes(app: FastifyInstance, routes: RunRoutes): Promise<void> {
  const { endpoints, bodyLimits, baseUrl } = routes
  app.decorateRequest('caller')

  leaveBodiesUnread(app)

  app.addHook('onRequest', async (request) => {
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
    announceRun(app, reply, run, { account: caller.accountId, key: caller.keyId }, routes)
    return runObject(run, baseUrl())
  })

  app.get<{ Params: { id: string } }>(`${RUNS_PATH}/:id`, async (request, reply) => {
    const run = await endpoints.findRun(request.getDecorator<Caller>('caller'), request.params.id)
    reply.header('cache-control', 'no-store')
    return runObject(run, baseUrl())
  })
}
