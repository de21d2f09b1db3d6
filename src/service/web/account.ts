/** The page of the account: its password, sessions and users. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AccountPage, type AccountView } from '../../console/account-page.js'
import { idIn } from '../rules/console-requests.js'
import { isEmail, storedEmail } from '../rules/credentials.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import { MAX_ACCOUNT_USERS } from '../store/users.js'
import { addLink, INVITATION_MS, linkPath } from './sessions.js'
import { type ById, fieldOf, type Site } from './site.js'

const NOTES: Readonly<Record<string, string>> = {
  password: 'The password is set. All other sessions have ended.',
  removed: 'The user was removed.',
}

/** Sends the page. A new link is in the answer to its form, and in no other. */
export async function sendAccountPage(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
  more: Partial<AccountView> = {},
): Promise<FastifyReply> {
  const { store, clock } = site.options
  const { id, user, fromLink } = site.session(request)
  const nowMs = clock.now()
  const [frame, sessions, users] = await Promise.all([
    site.frame(request),
    store.listSessions(user.id, nowMs),
    store.listUsers(nowMs, { accountId: user.accountId }),
  ])
  return site.page(reply, AccountPage, {
    frame,
    nowMs,
    canSetPassword: fromLink,
    hasPassword: user.password !== undefined,
    sessions: sessions.map((each) => ({ ...each, isCurrent: each.id === id })),
    users: users.map((each) => ({ ...each, hasPassword: each.password !== undefined })),
    ...more,
  })
}

export function addAccountRoutes(app: FastifyInstance, site: Site): void {
  const { store, clock } = site.options

  app.get<{ Querystring: { done?: string } }>('/account', (request, reply) =>
    sendAccountPage(site, request, reply, { note: NOTES[request.query.done ?? ''] }),
  )

  site.post(app, '/account/sessions/:id/end', async (_form, request, reply) => {
    const { user } = site.session(request)
    const { id } = request.params as ById['Params']
    if (!(await store.endSessionById(user.id, idIn(id)))) throw new Refusal('not_found')
    return site.redirect(reply, '/account')
  })

  site.post(
    app,
    '/account/users',
    async (form, request, reply) => {
      const { accountId } = site.session(request).user
      const email = storedEmail(fieldOf(form, 'email'))
      if (!isEmail(email)) throw invalidInput('This is not a valid email.')
      if ((await store.listUsers(clock.now(), { accountId })).length >= MAX_ACCOUNT_USERS)
        throw invalidInput(`An account has at most ${MAX_ACCOUNT_USERS} users.`)
      const by = site.proof(request)
      const id = await store.addUser({ email, accountId, nowMs: clock.now(), by })
      if (id === undefined) throw invalidInput('A user with this email already exists.')
      const token = await addLink(store, id, clock.now(), { lifetimeMs: INVITATION_MS, by })
      reply.header('cache-control', 'no-store')
      const link = `${site.options.baseUrl(request)}${linkPath(token)}`
      return await sendAccountPage(site, request, reply, { invitation: { email, link } })
    },
    (problem, form, request, reply) => {
      const typedEmail = fieldOf(form, 'email')
      return sendAccountPage(site, request, reply, { problems: { email: problem }, typedEmail })
    },
  )

  site.post(app, '/account/users/:id/remove', async (_form, request, reply) => {
    const id = idIn((request.params as ById['Params']).id)
    if (!(await store.removeUser(id, site.proof(request)))) throw new Refusal('not_found')
    return site.redirect(reply, '/account?done=removed')
  })
}
