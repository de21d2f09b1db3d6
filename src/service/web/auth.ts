/** The pages of sign-in, and the authentication endpoints, which take JSON or a form. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LinkPage, SignInPage } from '../../console/sign-in-page.js'
import { isObject } from '../../protocol/parse.js'
import { bodyOf, SMALL_BYTES } from '../http/request-body.js'
import { checkTransport } from '../rules/console-requests.js'
import { jsonOf } from '../rules/create-request.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import type { SessionRecord } from '../store/users.js'
import { sendAccountPage } from './account.js'
import type { BegunSession } from './sessions.js'
import {
  clearSession,
  fieldOf,
  formOf,
  isForm,
  type Site,
  setSession,
  type Visitor,
  visitorOf,
} from './site.js'

/** The texts of a form or of a JSON object, by name. */
type Fields = Readonly<Record<string, string | undefined>>

interface AuthRoute {
  readonly path: string
  /** Returns the session to describe in JSON, and the path that a form leads to. */
  act(
    fields: Fields,
    visitor: Visitor,
    reply: FastifyReply,
  ): Promise<{ readonly session?: SessionRecord; readonly next: string }>
  /** Shows a refused form again. Default: a page with the message. */
  redraw?(
    refusal: Refusal,
    fields: Fields,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> | FastifyReply
}

function addAuthRoute(app: FastifyInstance, site: Site, { path, act, redraw }: AuthRoute): void {
  app.post(path, { bodyLimit: SMALL_BYTES }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const fields = await fieldsOf(request)
    try {
      const { session, next } = await act(fields, visitorOf(request), reply)
      if (isForm(request)) return site.redirect(reply, next)
      return session === undefined ? reply.code(204).send() : await site.options.sessions.describe(session)
    } catch (error) {
      if (!isForm(request) || !(error instanceof Refusal) || redraw === undefined) throw error
      return await redraw(error, fields, request, reply)
    }
  })
}

async function fieldsOf(request: FastifyRequest): Promise<Fields> {
  if (isForm(request)) {
    const form = await formOf(request)
    return Object.fromEntries([...form.keys()].map((name) => [name, fieldOf(form, name)]))
  }
  const bytes = bodyOf(request)
  const body = bytes.length === 0 ? {} : jsonOf(bytes)
  if (!isObject(body)) throw invalidInput('The body must be a JSON object.')
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      if (typeof value === 'string' || typeof value === 'boolean') return [name, String(value)]
      throw invalidInput(`${name} must be text.`)
    }),
  )
}

function required(fields: Fields, name: string): string {
  const { [name]: value } = fields
  if (value === undefined) throw invalidInput(`${name} is missing.`)
  return value
}

export function addAuthRoutes(app: FastifyInstance, site: Site): void {
  const { sessions, publicUrl } = site.options
  const begin = async (visitor: Visitor, reply: FastifyReply, open: () => Promise<BegunSession>) => {
    checkTransport(visitor.seen, publicUrl)
    const { token, record } = await open()
    setSession(reply, token, visitor.isPlain)
    return record
  }

  app.get('/sign-in', (_request, reply) => site.page(reply, SignInPage, { email: '' }))
  app.get<{ Params: { token: string } }>('/link/:token', (request, reply) =>
    site.page(reply, LinkPage, { token: request.params.token }),
  )

  addAuthRoute(app, site, {
    path: '/api/auth/sign-in',
    async act(fields, visitor, reply) {
      const email = required(fields, 'email')
      const password = required(fields, 'password')
      const session = await begin(visitor, reply, () => sessions.signIn(email, password, visitor))
      return { session, next: '/runs' }
    },
    redraw: ({ message: problem, status }, { email = '' }, _request, reply) =>
      site.page(reply.code(status), SignInPage, { email, problem }),
  })
  addAuthRoute(app, site, {
    path: '/api/auth/link',
    async act(fields, visitor, reply) {
      const token = required(fields, 'token')
      const session = await begin(visitor, reply, () => sessions.useLink(token, visitor))
      return { session, next: session.user.password === undefined ? '/account' : '/runs' }
    },
  })
  addAuthRoute(app, site, {
    path: '/api/auth/sign-out',
    async act(fields, visitor, reply) {
      await sessions.signOut(visitor, fields.everywhere === 'true')
      clearSession(reply, visitor)
      return { next: '/sign-in' }
    },
  })
  addAuthRoute(app, site, {
    path: '/api/auth/password',
    async act(fields, visitor) {
      const session = await sessions.setPassword(visitor, required(fields, 'password'), fields.current)
      return { session, next: '/account?done=password' }
    },
    redraw(refusal, _fields, request, reply) {
      if (refusal.code === 'not_signed_in') throw refusal
      return sendAccountPage(site, request, reply.code(422), { problem: refusal.message })
    },
  })
  app.get('/api/auth/session', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    await sessions.countCheck(visitorOf(request))
    return await sessions.describe(site.session(request))
  })
}
