/** The authentication endpoints. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  AUTH_PATHS,
  type LinkToken,
  type LoginCode,
  type NewPassword,
  type SignIn,
  type SignOut,
} from '../../../protocol/console.js'
import type { Console } from '../../console/index.js'
import type { BegunSession } from '../../console/sessions.js'
import { CONSOLE_BODIES } from '../../rules/console-bodies.js'
import { checkTransport, isPlainLoopback } from '../../rules/own-origin.js'
import type { BodyLimits } from '../request-body.js'
import { readJsonBodies } from './json-bodies.js'
import { clearSessionCookie, sessionOf, setSessionCookie, visitorOf } from './visitor.js'

export interface AuthRoutes {
  readonly console: Pick<Console, 'signingIn' | 'limits' | 'logins'>
  readonly bodyLimits: BodyLimits
  readonly publicUrl: string | undefined
}

export async function addAuthRoutes(
  app: FastifyInstance,
  { console: { signingIn, limits, logins }, bodyLimits, publicUrl }: AuthRoutes,
): Promise<void> {
  readJsonBodies(app, bodyLimits)
  const isPlain = (request: FastifyRequest) => isPlainLoopback(visitorOf(request).seen, publicUrl)

  async function begin(request: FastifyRequest, reply: FastifyReply, { token, record }: BegunSession) {
    setSessionCookie(reply, token, isPlain(request))
    return await signingIn.describe(record)
  }

  app.post<{ Body: SignIn }>(
    AUTH_PATHS.signIn,
    { schema: { body: CONSOLE_BODIES.signIn } },
    async (request, reply) => {
      const visitor = visitorOf(request)
      checkTransport(visitor.seen, publicUrl)
      return await begin(request, reply, await signingIn.signIn(request.body, visitor, visitor.session))
    },
  )

  app.post<{ Body: LinkToken }>(
    AUTH_PATHS.link,
    { schema: { body: CONSOLE_BODIES.link } },
    async (request, reply) => {
      const visitor = visitorOf(request)
      checkTransport(visitor.seen, publicUrl)
      return await begin(
        request,
        reply,
        await signingIn.useLink(request.body.token, visitor, visitor.session),
      )
    },
  )

  app.post<{ Body: SignOut }>(
    AUTH_PATHS.signOut,
    { schema: { body: CONSOLE_BODIES.signOut } },
    async (request, reply) => {
      const visitor = visitorOf(request)
      await signingIn.signOut(visitor.session, visitor, request.body.everywhere ?? false)
      return clearSessionCookie(reply, isPlain(request)).code(204).send()
    },
  )

  app.post<{ Body: NewPassword }>(
    AUTH_PATHS.password,
    { schema: { body: CONSOLE_BODIES.password } },
    async (request) => {
      const visitor = visitorOf(request)
      return await signingIn.describe(await signingIn.setPassword(visitor.session, visitor, request.body))
    },
  )

  app.get(AUTH_PATHS.session, async (request) => {
    const { address, session } = visitorOf(request)
    await limits.countSessionCheck(address, session?.hash)
    return await signingIn.describe(sessionOf(request))
  })

  app.post<{ Body: LoginCode }>(AUTH_PATHS.login, { schema: { body: CONSOLE_BODIES.login } }, (request) =>
    logins.exchange(visitorOf(request).address, request.body),
  )
}
