/** The session cookie, and the visitor that it identifies. */
import cookies from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clientAddress } from '../http/connections.js'
import { checkOwnOrigin, isPlainLoopback, type SeenRequest } from '../rules/console-requests.js'
import { SESSION_MS, type Sender, type Sessions } from './sessions.js'

const SESSION_COOKIE = 'rushes_session'
const COOKIE = { path: '/', httpOnly: true, sameSite: 'strict' } as const

export interface Visitor extends Sender {
  readonly seen: SeenRequest
  /** Whether the browser is on this machine and uses plain HTTP. Then the cookie cannot be `Secure`. */
  readonly isPlain: boolean
  /** The token of the session. */
  readonly token: string | undefined
}

export const visitorOf = (request: FastifyRequest): Visitor => request.getDecorator<Visitor>('visitor')

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
    const { protocol, host, headers, method } = request
    const seen: SeenRequest = {
      scheme: protocol,
      host,
      origin: headers.origin,
      fetchSite: headers['sec-fetch-site'] as string | undefined,
    }
    if (method !== 'GET' && method !== 'HEAD') checkOwnOrigin(seen, publicUrl)
    const isPlain = isPlainLoopback(seen, publicUrl)
    const token = request.cookies[SESSION_COOKIE]
    const found = await sessions.find(token)
    if (found?.isExtended && token !== undefined) setSession(reply, token, isPlain)
    request.setDecorator<Visitor>('visitor', {
      session: found?.record,
      token,
      seen,
      isPlain,
      address,
      userAgent: headers['user-agent'],
    })
  })
}

export const setSession = (reply: FastifyReply, token: string, isPlain: boolean): FastifyReply =>
  reply.setCookie(SESSION_COOKIE, token, { ...COOKIE, secure: !isPlain, maxAge: SESSION_MS / 1_000 })

export const clearSession = (reply: FastifyReply, { isPlain }: Visitor): FastifyReply =>
  reply.clearCookie(SESSION_COOKIE, { ...COOKIE, secure: !isPlain })
