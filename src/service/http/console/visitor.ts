/** Who sends a request to the console: the session of its cookie, and where it comes from. */
import cookies from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AUTH_PATHS, SESSION_HEADER } from '../../../protocol/console.js'
import { type Client, SESSION_MS, type Sessions, sessionIdOf } from '../../console/sessions.js'
import { checkOwnOrigin, isPlainLoopback, type SeenRequest } from '../../rules/own-origin.js'
import { Refusal } from '../../rules/refusal.js'
import type { SessionRecord } from '../../store/user-store.js'
import { clientAddress } from '../client-address.js'

export const SESSION_COOKIE = 'rushes_session'

export interface Visitor extends Client {
  readonly session: SessionRecord | undefined
  readonly seen: SeenRequest
}

export interface VisitorOptions {
  readonly sessions: Pick<Sessions, 'find'>
  readonly publicUrl: string | undefined
}

/** Reads the visitor of every request of this scope, after a request of another website is refused. */
export async function readVisitors(
  app: FastifyInstance,
  { sessions, publicUrl }: VisitorOptions,
): Promise<void> {
  await app.register(cookies)
  app.decorateRequest('visitor')
  app.addHook('onRequest', async (request, reply) => {
    // Before anything is waited for: a connection that is closed has none.
    const address = clientAddress(request)
    const seen = seenRequest(request)
    if (!isRead(request) && !isOfProgram(request)) checkOwnOrigin(seen, publicUrl)
    const found = await sessions.find(request.cookies[SESSION_COOKIE])
    checkShownSession(header(request.headers[SESSION_HEADER]), found?.record)
    const token = request.cookies[SESSION_COOKIE]
    if (found?.isExtended && token !== undefined)
      setSessionCookie(reply, token, isPlainLoopback(seen, publicUrl))
    request.setDecorator<Visitor>('visitor', {
      session: found?.record,
      seen,
      address,
      userAgent: request.headers['user-agent'],
    })
  })
  app.addHook('onSend', async (_request, reply) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
  })
}

/** Throws `Refusal` (409) when a page shows another session than that of the cookie. */
function checkShownSession(shown: string | undefined, session: SessionRecord | undefined): void {
  if (shown !== undefined && session !== undefined && shown !== sessionIdOf(session))
    throw new Refusal('session_changed')
}

export const visitorOf = (request: FastifyRequest): Visitor => request.getDecorator<Visitor>('visitor')

/** Throws `Refusal` (401). */
export function sessionOf(request: FastifyRequest): SessionRecord {
  const { session } = visitorOf(request)
  if (session === undefined) throw new Refusal('not_signed_in')
  return session
}

/** Throws `Refusal` (403). */
export function checkNotBanned({ user }: SessionRecord): void {
  if (user.banned) throw new Refusal('account_banned')
}

const COOKIE = { path: '/', httpOnly: true, sameSite: 'strict' } as const

export const setSessionCookie = (reply: FastifyReply, token: string, isPlain: boolean): FastifyReply =>
  reply.setCookie(SESSION_COOKIE, token, { ...COOKIE, secure: !isPlain, maxAge: SESSION_MS / 1_000 })

export const clearSessionCookie = (reply: FastifyReply, isPlain: boolean): FastifyReply =>
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

/** `rushes login --web` sends no `Origin`, and uses no session. A browser sends it always. */
const isOfProgram = ({ headers, routeOptions }: FastifyRequest): boolean =>
  routeOptions.url === AUTH_PATHS.login &&
  headers.origin === undefined &&
  headers['sec-fetch-site'] === undefined
