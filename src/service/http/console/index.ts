/** The console's HTTP: its page, the authentication endpoints, and those that the page asks. */
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { CONSOLE_PATHS, type KeyTermsBody, type LoginRequest } from '../../../protocol/console.js'
import type { Console } from '../../console/index.js'
import { CONSOLE_BODIES } from '../../rules/console-bodies.js'
import { isPlainLoopback } from '../../rules/own-origin.js'
import type { Query } from '../../rules/query.js'
import { withBody } from '../request-body.js'
import { announceRun, idempotencyKeyOf, leaveBodiesUnread, type RunRoutes } from '../run-routes.js'
import { addAuthRoutes } from './auth-routes.js'
import { readJsonBodies } from './json-bodies.js'
import { addPageRoutes, type PageRoutes } from './page-routes.js'
import { addThumbnailRoute } from './thumbnail-route.js'
import { checkNotBanned, clearSessionCookie, readVisitors, sessionOf, visitorOf } from './visitor.js'

export interface ConsoleRoutes {
  readonly console: Console
  readonly runs: RunRoutes
  readonly page: PageRoutes
  readonly publicUrl: string | undefined
}

interface OfOne {
  Params: { id: string }
}

export async function addConsoleRoutes(app: FastifyInstance, options: ConsoleRoutes): Promise<void> {
  const { console, runs, page, publicUrl } = options
  const { bodyLimits } = runs
  await app.register(addPageRoutes, page)
  await app.register(async (visited) => {
    await readVisitors(visited, { sessions: console.sessions, publicUrl })
    await visited.register(addAuthRoutes, { console, bodyLimits, publicUrl })
    await visited.register(addReadingRoutes, options)
    await visited.register(addThumbnailRoute, console)
    await visited.register(addCreateRoute, { console, runs })
  })
}

/** All but the create and the thumbnails, which have limits of their own. */
async function addReadingRoutes(app: FastifyInstance, options: ConsoleRoutes): Promise<void> {
  const { limits, runs, keys, credits, sessions, logins } = options.console
  readJsonBodies(app, options.runs.bodyLimits)
  app.addHook('onRequest', async (request) => limits.countRequest(sessionOf(request).user.id))
  const asked = (request: Parameters<typeof sessionOf>[0]) =>
    [sessionOf(request).user.accountId, request.query as Query] as const

  app.get(CONSOLE_PATHS.runs, (request) => runs.list(...asked(request)))
  app.get(CONSOLE_PATHS.updates, (request) => runs.updates(...asked(request)))
  app.get<OfOne>(CONSOLE_PATHS.run, (request) => runs.find(asked(request)[0], request.params.id))

  app.get(CONSOLE_PATHS.keys, (request) => keys.list(...asked(request)))
  app.post<{ Body: KeyTermsBody & { name: string } }>(
    CONSOLE_PATHS.keys,
    { schema: { body: CONSOLE_BODIES.newKey } },
    async (request, reply) => {
      checkNotBanned(sessionOf(request))
      reply.code(201)
      return await keys.create(asked(request)[0], request.body)
    },
  )
  app.patch<OfOne & { Body: KeyTermsBody }>(
    CONSOLE_PATHS.key,
    { schema: { body: CONSOLE_BODIES.changedKey } },
    (request) => keys.change(asked(request)[0], request.params.id, request.body),
  )
  app.post<OfOne>(CONSOLE_PATHS.rotate, async (request) => {
    checkNotBanned(sessionOf(request))
    return await keys.rotate(asked(request)[0], request.params.id)
  })

  app.get(CONSOLE_PATHS.credits, (request) => credits.entries(...asked(request)))
  app.get(CONSOLE_PATHS.spend, (request) => credits.spend(...asked(request)))
  app.get(CONSOLE_PATHS.csv, async (request, reply) => {
    const parts = credits.csv(...asked(request))
    // An error becomes a response only before the first part is sent.
    const first = await parts.next()
    reply.header('content-disposition', 'attachment; filename="credits.csv"').type('text/csv; charset=utf-8')
    return Readable.from(joined(first.value ?? '', parts), { objectMode: false })
  })

  app.get(CONSOLE_PATHS.sessions, (request) => sessions.list(sessionOf(request)))
  app.delete<OfOne>(CONSOLE_PATHS.session, async (request, reply) => {
    const { id, user } = sessionOf(request)
    await sessions.end(user.id, request.params.id)
    const { seen } = visitorOf(request)
    if (String(id) === request.params.id) clearSessionCookie(reply, isPlainLoopback(seen, options.publicUrl))
    return reply.code(204).send()
  })

  app.post<{ Body: LoginRequest }>(
    CONSOLE_PATHS.logins,
    { schema: { body: CONSOLE_BODIES.grantedLogin } },
    async (request, reply) => {
      const session = sessionOf(request)
      checkNotBanned(session)
      reply.code(201)
      return await logins.grant(session.user, request.body)
    },
  )
}

async function* joined(first: string, others: AsyncGenerator<string>): AsyncGenerator<string> {
  yield first
  yield* others
}

/** The body is that of a create of the API: of the same size, and read in the same way. */
async function addCreateRoute(
  app: FastifyInstance,
  { console: { limits, runs }, runs: routes }: Pick<ConsoleRoutes, 'console' | 'runs'>,
): Promise<void> {
  leaveBodiesUnread(app)
  app.addHook('onRequest', async (request) => {
    const session = sessionOf(request)
    checkNotBanned(session)
    await limits.countCreate(session.user.id)
  })
  app.post(CONSOLE_PATHS.runs, async (request, reply) => {
    const { id: user, accountId } = sessionOf(request).user
    const { endpoints, bodyLimits } = routes
    const key = idempotencyKeyOf(request)
    const created = await withBody(request.raw, bodyLimits, accountId, (body) =>
      endpoints.createWithoutKey(accountId, body, key),
    )
    announceRun(app, reply, created, { account: accountId, user }, routes)
    return runs.created(created.run)
  })
}
