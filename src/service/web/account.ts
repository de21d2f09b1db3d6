/** The page of the account: its password, sessions and users. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AccountPage, type AccountView } from '../../console/account-page.js'
import { idIn } from '../rules/console-requests.js'
import { Refusal } from '../rules/refusal.js'
import type { ById, Site } from './site.js'

const NOTES: Readonly<Record<string, string>> = {
  password: 'The password is set. All other sessions have ended.',
  removed: 'The user was removed.',
}

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
    store.listUsers({ accountId: user.accountId }),
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
  const { store } = site.options

  app.get<{ Querystring: { done?: string } }>('/account', (request, reply) =>
    sendAccountPage(site, request, reply, { note: NOTES[request.query.done ?? ''] }),
  )

  site.post(app, '/account/sessions/:id/end', async (_form, request, reply) => {
    const { user } = site.session(request)
    const { id } = request.params as ById['Params']
    if (!(await store.endSessionById(user.id, idIn(id)))) throw new Refusal('not_found')
    return site.redirect(reply, '/account')
  })

  site.post(app, '/account/users/:id/remove', async (_form, request, reply) => {
    const id = idIn((request.params as ById['Params']).id)
    if (!(await store.removeUser(id, site.proof(request)))) throw new Refusal('not_found')
    return site.redirect(reply, '/account?done=removed')
  })
}
