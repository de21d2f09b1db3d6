/** The users of an account, for its owners: roles and invitations. Without HTTP. */
import type { Clock } from '../../host/clock.js'
import type { ConsoleUser, Invitation, InvitedUser, UserList, UserRole } from '../../protocol/console.js'
import { idIn } from '../rules/console-requests.js'
import { isEmail, storedEmail } from '../rules/credentials.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import { isoOrNull } from '../rules/times.js'
import {
  MAX_ACCOUNT_USERS,
  type UserDetails,
  type UserRecord,
  type UserStore,
} from '../store/console-store.js'
import { addLink } from './sessions.js'

/**
 * `by` is the signed-in owner, and `id` an unchecked value of a request. All functions throw `Refusal`: 404 for a user of
 * another account, 400 for a change of `by` itself.
 */
export interface ConsoleUsers {
  list(by: UserRecord): Promise<UserList>
  /** Adds a user, and returns a link that works once, within 15 minutes. */
  invite(by: UserRecord, body: InvitedUser): Promise<Invitation>
  /** Returns another link, for a user who has not set a password. */
  inviteAgain(by: UserRecord, id: string): Promise<Invitation>
  change(by: UserRecord, id: string, role: UserRole | 'removed'): Promise<void>
}

interface ConsoleUsersOptions {
  readonly store: UserStore
  readonly clock: Clock
  baseUrl(): string
}

export function createConsoleUsers({ store, clock, baseUrl }: ConsoleUsersOptions): ConsoleUsers {
  const usersOf = ({ accountId }: UserRecord) => store.listUsers(clock.now(), accountId)

  async function invitationOf(by: UserRecord, id: number): Promise<Invitation> {
    const user = (await usersOf(by)).find((each) => each.id === id)
    if (user === undefined) throw new Refusal('not_found')
    // With a link, an owner could sign in as this user.
    if (user.password !== undefined)
      throw invalidInput(
        'This user has a password. An administrator can create a link: rushes admin user link <email>.',
      )
    const token = await addLink(store, id, clock.now())
    return { user: userBody(user), link: `${baseUrl()}/#/link/${token}` }
  }

  return {
    list: async (by) => ({ users: (await usersOf(by)).map(userBody) }),

    async invite(by, { email: written, role }) {
      const email = storedEmail(written)
      if (!isEmail(email)) throw invalidInput('The email is not valid.')
      if ((await usersOf(by)).length >= MAX_ACCOUNT_USERS)
        throw invalidInput(`An account has at most ${MAX_ACCOUNT_USERS} users.`)
      const id = await store.addUser({ email, accountId: by.accountId, role, nowMs: clock.now() })
      if (id === undefined) throw invalidInput('A user with this email already exists.')
      return await invitationOf(by, id)
    },

    inviteAgain: (by, id) => invitationOf(by, idIn(id)),

    async change(by, written, role) {
      const { id: byId, accountId } = by
      const id = idIn(written)
      if (id === byId) throw invalidInput('You cannot change your own user.')
      if (!(await store.changeUser({ id, byId, accountId, role }))) throw new Refusal('not_found')
    },
  }
}

const userBody = (user: UserDetails): ConsoleUser => ({
  id: user.id,
  email: user.email,
  role: user.role,
  has_password: user.password !== undefined,
  sessions: user.sessions,
  last_seen_at: isoOrNull(user.lastSeenAtMs),
  created_at: new Date(user.createdAtMs).toISOString(),
})
