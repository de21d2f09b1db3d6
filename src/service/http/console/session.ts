/**
 * Sessions of the console: the cookie, the visitor that it identifies, and the authentication endpoints, which set it.
 */
import cookies from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  AUTH_PATHS,
  type LinkToken,
  type NewPassword,
  SESSION_HEADER,
  type SignIn,
  type SignOut,
} from '../../../protocol/console.js'
import type { Console } from '../../console/index.js'
import {
  type BegunSession,
  SESSION_MS,
  type Sender,
  type Sessions,
  sessionIdOf,
} from '../../console/sessions.js'
import {
  CONSOLE_BODIES,
  checkOwnOrigin,
  checkTransport,
  isPlainLoopback,
  type SeenRequest,
} from '../../rules/console-requests.js'
import { Refusal } from '../../rules/refusal.js'
import type { SessionRecord } from '../../store/console-store.js'
import { clientAddress } from '../connections.js'
import { type BodyLimits, readJsonBodies } from '../request-body.js'

const SESSION_COOKIE = 'rushes_session'

interface Visitor extends Sender {
  readonly seen: SeenRequest
  /** Whether the browser is on this machine and uses plain HTTP. Then the cookie cannot be `Secure`. */
  readonly isPlain: boolean
}

/** Refuses requests from other websites, and identifies the visitor of every other request in this scope. */
export async function readVisitors(
  app: FastifyInstance,
  sessions: Sessions,
  publicUrl: string | undefined,
): Promise<void> {
  await app.register(cookies)
  app.decorateRequest('visitor')
  app.addHook('onRequest', async (request, reply) => {
    // Read the address before the first `await`: a closed connection has none.
    const address = clientAddress(request)
    const seen = seenRequest(request)
    const isPlain = isPlainLoopback(seen, publicUrl)
    if (!isRead(request)) checkOwnOrigin(seen, publicUrl)
    const token = request.cookies[SESSION_COOKIE]
    const found = await sessions.find(token)
    checkShownSession(header(request.headers[SESSION_HEADER]), found?.record)
    if (found?.isExtended && token !== undefined) setSessionCookie(reply, token, isPlain)
    request.setDecorator<Visitor>('visitor', {
      session: found?.record,
      seen,
      isPlain,
      address,
      userAgent: request.headers['user-agent'],
    })
  })
  app.addHook('onSend', async (_request, reply) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
  })
}

/** Throws `Refusal` (409) if the page shows another session than the cookie's. */
function checkShownSession(shownId: string | undefined, session: SessionRecord | undefined): void {
  if (shownId !== undefined && session !== undefined && shownId !== sessionIdOf(session))
    throw new Refusal('session_changed')
}

export const visitorOf = (request: FastifyRequest): Visitor => request.getDecorator<Visitor>('visitor')

/** Throws `Refusal` (401) without a session. */
export function sessionOf(request: FastifyRequest): SessionRecord {
  const { session } = visitorOf(request)
  if (session === undefined) throw new Refusal('not_signed_in')
  return session
}

/** Throws `Refusal` (403) if the account is banned. */
export function checkNotBanned({ user }: SessionRecord): void {
  if (user.banned) throw new Refusal('account_banned')
}

const COOKIE = { path: '/', httpOnly: true, sameSite: 'strict' } as const

const setSessionCookie = (reply: FastifyReply, token: string, isPlain: boolean): FastifyReply =>
  reply.setCookie(SESSION_COOKIE, token, { ...COOKIE, secure: !isPlain, maxAge: SESSION_MS / 1_000 })

export const clearSessionCookie = (reply: FastifyReply, { isPlain }: Visitor): FastifyReply =>
  reply.clearCookie(SESSION_COOKIE, { ...COOKIE, secure: !isPlain })

const seenRequest = ({ protocol, host, headers }: FastifyRequest): SeenRequest => ({
  scheme: protocol,
  host,
  origin: headers.origin,
  fetchSite: header(headers['sec-fetch-site']),
})

const header = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.join(', ')

const isRead = ({ method }: FastifyRequest): boolean => method === 'GET' || method === 'HEAD'

interface AuthOptions {
  readonly console: Console
  readonly bodyLimits: BodyLimits
  readonly publicUrl: string | undefined
}

export async function addAuthRoutes(
  app: FastifyInstance,
  { console: { sessions, limits }, bodyLimits, publicUrl }: AuthOptions,
): Promise<void> {
  readJsonBodies(app, bodyLimits)
  const post = <Body>(
    path: string,
    body: object,
    answer: (body: Body, visitor: Visitor, reply: FastifyReply) => Promise<unknown>,
  ) =>
    app.post<{ Body: Body }>(path, { schema: { body } }, (request, reply) =>
      answer(request.body as Body, visitorOf(request), reply),
    )
  const begin = async (visitor: Visitor, reply: FastifyReply, open: () => Promise<BegunSession>) => {
    checkTransport(visitor.seen, publicUrl)
    const { token, record } = await open()
    setSessionCookie(reply, token, visitor.isPlain)
    return await sessions.describe(record)
  }

  post<SignIn>(AUTH_PATHS.signIn, CONSOLE_BODIES.signIn, (body, visitor, reply) =>
    begin(visitor, reply, () => sessions.signIn(body, visitor)),
  )
  post<LinkToken>(AUTH_PATHS.link, CONSOLE_BODIES.link, ({ token }, visitor, reply) =>
    begin(visitor, reply, () => sessions.useLink(token, visitor)),
  )
  post<SignOut>(
    AUTH_PATHS.signOut,
    CONSOLE_BODIES.signOut,
    async ({ everywhere = false }, visitor, reply) => {
      await sessions.signOut(visitor, everywhere)
      return clearSessionCookie(reply, visitor).code(204).send()
    },
  )
  post<NewPassword>(AUTH_PATHS.password, CONSOLE_BODIES.password, async (body, visitor) =>
    sessions.describe(await sessions.setPassword(visitor, body)),
  )
  app.get(AUTH_PATHS.session, async (request) => {
    const { address, session } = visitorOf(request)
    await limits.countSessionCheck(address, session?.hash)
    return await sessions.describe(sessionOf(request))
  })
}
