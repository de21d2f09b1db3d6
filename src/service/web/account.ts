/** The page of the account: its password, sessions and users. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AccountPage, type AccountView } from '../../console/account-page.js'
import type { Site } from './site.js'

export async function sendAccountPage(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
  more: Pick<AccountView, 'note' | 'problem'> = {},
): Promise<FastifyReply> {
  const { store, clock } = site.options
  const { id, user, fromLink } = site.session(request)
  const [sessions, users] = await Promise.all([
    store.listSessions(user.id, clock.now()),
    store.listUsers(user.accountId),
  ])
  return site.page(reply, AccountPage, {
    user: user.email,
    account: user.account,
    canSetPassword: fromLink,
    hasPassword: user.password !== undefined,
    sessions: sessions.map((each) => ({ ...each, isCurrent: each.id === id })),
    users: users.map((each) => ({ ...each, hasPassword: each.password !== undefined })),
    ...more,
  })
}

export function addAccountRoutes(app: FastifyInstance, site: Site): void {
  app.get<{ Querystring: { done?: string } }>('/account', (request, reply) => {
    const note = request.query.done && 'The password is set. All other sessions have ended.'
    return sendAccountPage(site, request, reply, { note })
  })
}
