/** The first user of a service, and links that sign in. */
import { FIRST_ACCOUNT } from '../key-lookup.js'
import { hashOfKey, newSecret } from '../secrets.js'
import type { ConsoleStart } from '../service.js'
import type { AccountStore } from '../store/account-store.js'
import type { UserStore } from '../store/user-store.js'

export const FIRST_EMAIL = 'owner@localhost'

const LINK_MS = 15 * 60_000

/** The token of a link that signs this user in once. */
export async function addLink(
  store: Pick<UserStore, 'addLink'>,
  userId: number,
  nowMs: number,
): Promise<string> {
  const token = newSecret()
  await store.addLink({ hash: hashOfKey(token), userId, nowMs, expiresAtMs: nowMs + LINK_MS })
  return token
}

/** On the first start of new data its first user is created. Existing data may belong to others: there an administrator decides. */
export async function startConsole(
  store: Pick<UserStore, 'addUser' | 'addLink' | 'listUsers'> & Pick<AccountStore, 'ensureAccount'>,
  nowMs: number,
  isFirstStart: boolean,
): Promise<ConsoleStart> {
  if (isFirstStart) {
    const accountId = await store.ensureAccount({ ...FIRST_ACCOUNT, nowMs })
    const userId = await store.addUser({ email: FIRST_EMAIL, accountId, nowMs })
    if (userId !== undefined) return { linkToken: await addLink(store, userId, nowMs), hasUsers: true }
  }
  return { linkToken: undefined, hasUsers: (await store.listUsers(nowMs)).length > 0 }
}
