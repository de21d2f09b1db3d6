/** The pages of sign-in, and the authentication endpoints, which answer JSON and forms. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LinkPage, SignInPage } from '../../console/index.js'
import { isObject } from '../../protocol/parse.js'
import { refusalOf, sendRefusal } from '../http/error-responses.js'
import { bodyOf, SMALL_BYTES } from '../http/request-body.js'
import { checkTransport } from '../rules/console-requests.js'
import { jsonOf } from '../rules/create-request.js'
import { MAX_EMAIL_LENGTH } from '../rules/credentials.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import { sendAccountPage } from './account.js'
import type { BegunSession } from './sessions.js'
import { fieldOf, formOf, isForm, type Site } from './site.js'
import { clearSession, setSession, type Visitor, visitorOf } from './visitor.js'

/** Texts of a form or of a JSON object, by name. Throws `Refusal` (400) for a missing one. */
type Fields = (name: string, maxLength?: number) => string | undefined

/**
 * Adds a route that answers JSON with JSON, and a form with a page: `answer` returns the path to go to, and `onRefused` shows the
 * form again.
 */
interface AuthRoute {
  readonly path: string
  answer(
    fields: Fields,
    visitor: Visitor,
    reply: FastifyReply,
  ): Promise<{ json: object | undefined; next: string }>
  onRefused(
    refusal: Refusal,
    fields: Fields,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<unknown> | unknown
}

function addAuthRoute(app: FastifyInstance, site: Site, { path, answer, onRefused }: AuthRoute): void {
  app.post(path, { bodyLimit: SMALL_BYTES }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const visitor = visitorOf(request)
    if (isForm(request)) {
      const form = await formOf(request)
      const fields: Fields = (name) => fieldOf(form, name) || undefined
      try {
        return site.redirect(reply, (await answer(fields, visitor, reply)).next)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return await onRefused(error, fields, request, reply)
      }
    }
    try {
      const body = bodyOf(request).length === 0 ? {} : jsonOf(bodyOf(request))
      if (!isObject(body)) throw invalidInput('The body must be a JSON object.')
      const { json } = await answer((name) => textIn(body, name), visitor, reply)
      return json === undefined ? reply.code(204).send() : json
    } catch (error) {
      if (!(error instanceof Refusal)) site.options.onError(error)
      return sendRefusal(reply, refusalOf(error))
    }
  })
}

function textIn(body: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  throw invalidInput(`${name} must be text.`)
}

function required(fields: Fields, name: string, maxLength = 2_000): string {
  const value = fields(name)
  if (value === undefined) throw invalidInput(`${name} is missing.`)
  if (value.length > maxLength) throw invalidInput(`${name} has more than ${maxLength} characters.`)
  return value
}

/** A path of this service, to go to after signing in. */
const safeNext = (next: string | undefined): string =>
  next !== undefined && /^\/(?![/\\])/.test(next) && !next.startsWith('/sign-in') ? next : '/runs'

export function addAuthRoutes(app: FastifyInstance, site: Site): void {
  const { sessions, publicUrl } = site.options
  const { assets } = site
  const begin = async (visitor: Visitor, reply: FastifyReply, open: () => Promise<BegunSession>) => {
    checkTransport(visitor.seen, publicUrl)
    const { token, record } = await open()
    setSession(reply, token, visitor.isPlain)
    return record
  }

  app.get<{ Querystring: { next?: string } }>('/sign-in', (request, reply) => {
    const next = safeNext(request.query.next)
    if (visitorOf(request).session !== undefined) return site.redirect(reply, next)
    return site.page(reply, SignInPage, { assets, next, email: '' })
  })
  app.get<{ Params: { token: string } }>('/link/:token', (request, reply) =>
    site.page(reply, LinkPage, { assets, token: request.params.token }),
  )

  addAuthRoute(app, site, {
    path: '/api/auth/sign-in',
    async answer(fields, visitor, reply) {
      const email = required(fields, 'email', MAX_EMAIL_LENGTH)
      const password = required(fields, 'password')
      const record = await begin(visitor, reply, () => sessions.signIn(email, password, visitor))
      return { json: await sessions.describe(record), next: safeNext(fields('next')) }
    },
    onRefused: ({ message: problem, status }, fields, _request, reply) =>
      site.page(
        reply,
        SignInPage,
        { assets, next: safeNext(fields('next')), email: fields('email') ?? '', problem },
        status,
      ),
  })
  addAuthRoute(app, site, {
    path: '/api/auth/link',
    async answer(fields, visitor, reply) {
      const token = required(fields, 'token', 300)
      const record = await begin(visitor, reply, () => sessions.useLink(token, visitor))
      return {
        json: await sessions.describe(record),
        next: record.user.password === undefined ? '/account' : '/runs',
      }
    },
    onRefused({ code, message: problem, status }, fields, _request, reply) {
      const token = code === 'invalid_link' ? undefined : fields('token')
      return site.page(reply, LinkPage, { assets, token, problem }, status)
    },
  })
  addAuthRoute(app, site, {
    path: '/api/auth/sign-out',
    async answer(fields, visitor, reply) {
      await sessions.signOut(visitor, fields('everywhere') === 'true')
      clearSession(reply, visitor)
      return { json: undefined, next: '/sign-in' }
    },
    onRefused: (_refusal, _fields, _request, reply) => site.redirect(reply, '/sign-in'),
  })
  addAuthRoute(app, site, {
    path: '/api/auth/password',
    async answer(fields, visitor) {
      const password = required(fields, 'password')
      const session = await sessions.setPassword(visitor, password, fields('current'))
      return { json: await sessions.describe(session), next: '/account?done=password' }
    },
    async onRefused(refusal, _fields, request, reply) {
      if (refusal.code === 'not_signed_in') throw refusal
      return await sendAccountPage(site, request, reply, { problems: { password: refusal.message } }, 422)
    },
  })
  app.get('/api/auth/session', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const visitor = visitorOf(request)
    try {
      await sessions.countCheck(visitor)
      return await sessions.describe(site.session(request))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return sendRefusal(reply, error)
    }
  })
}
