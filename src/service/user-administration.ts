/** Manages the users of the console. Only administrators can add a user. */
import { type RushesError, usageError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { quoteWord } from '../protocol/text.js'
import { isEmail, storedEmail } from './rules/credentials.js'
import type { AccountRecord } from './store/account-store.js'
import type { UserDetails } from './store/console-store.js'
import type { Store } from './store/contract.js'
import { addLink } from './web/sessions.js'

export interface UserWithLink {
  readonly user: UserDetails
  /** Token of a single-use sign-in link, valid for 15 minutes. */
  readonly linkToken: string
}

/**
 * All functions throw `RushesError` (usage) for a missing object or a change that is not allowed, and then change
 * nothing.
 */
export interface UserAdministration {
  addUser(email: string, account: string): Promise<UserWithLink>
  users(): Promise<readonly UserDetails[]>
  removeUser(email: string): Promise<UserDetails>
  linkUser(email: string): Promise<UserWithLink>
}

export function createUserAdministration(
  store: Store,
  clock: Clock,
  accountOf: (name: string) => Promise<AccountRecord>,
): UserAdministration {
  async function userOf(email: string): Promise<UserDetails> {
    const users = await store.listUsers(clock.now())
    const found = users.find((user) => user.email === email)
    if (found !== undefined) return found
    throw usageError(
      `User ${email} does not exist.`,
      users.length === 0
        ? 'Add one with `rushes admin user add <email> --account <name>`.'
        : 'List the users with `rushes admin user list`.',
    )
  }

  const withLink = async (user: UserDetails): Promise<UserWithLink> => ({
    user,
    linkToken: await addLink(store, user.id, clock.now()),
  })

  return {
    async addUser(written, account) {
      const email = checkedEmail(written)
      const { id: accountId } = await accountOf(account)
      const id = await store.addUser({ email, accountId, nowMs: clock.now() })
      if (id === undefined)
        throw usageError(
          `User ${email} already exists.`,
          `For another sign-in link, run \`rushes admin user link ${quoteWord(email)}\`.`,
        )
      return await withLink(await userOf(email))
    },
    users: () => store.listUsers(clock.now()),
    async removeUser(written) {
      const user = await userOf(checkedEmail(written))
      await store.removeUser(user.id)
      return user
    },
    linkUser: async (written) => withLink(await userOf(checkedEmail(written))),
  }
}

/** Returns undefined if the email is valid. */
export const problemOfEmail = (written: string): RushesError | undefined =>
  isEmail(storedEmail(written))
    ? undefined
    : usageError(
        `"${written}" is not a valid email.`,
        'Example: ann@example.com. An email has one @, no spaces, and at most 254 characters.',
      )

function checkedEmail(written: string): string {
  const problem = problemOfEmail(written)
  if (problem !== undefined) throw problem
  return storedEmail(written)
}
