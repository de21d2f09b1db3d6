/**
 * The API keys of an account: users manage them on the console, and `rushes login --web` creates them. Without HTTP.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../host/clock.js'
import type {
  ConsoleKey,
  KeyList,
  KeyLog,
  KeyTermsBody,
  LoginCode,
  LoginGrant,
  LoginRequest,
  NewKeyAnswer,
} from '../../protocol/console.js'
import { formatRate } from '../rate/rate-limiter.js'
import { choiceIn, cursorIn, idIn, type Query } from '../rules/console-requests.js'
import { keyNameOf, keyTermsOf } from '../rules/key-terms.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import { isoOrNull } from '../rules/times.js'
import { hashOfKey, newKey, newSecret, sameHash } from '../secrets.js'
import type { AccountStore, KeyDetails } from '../store/account-store.js'
import type { ConsoleStore, UserRecord, UserStore } from '../store/console-store.js'
import type { Limits } from './limits.js'

/** Lifetime of a login code. Longer than the window of the rate limit, so that a command can retry after it. */
const CODE_MS = 120_000

const PAGE_SIZE = 100

/**
 * `user` is the signed-in user: a member sees and changes only the keys that they created. `id` is an unchecked value of a
 * request. All functions throw `Refusal`: 404 for any other key, 400 for a change of an archived key, 409 for one active key
 * too many.
 */
export interface ConsoleKeys {
  list(user: UserRecord, query: Query): Promise<KeyList>
  create(user: UserRecord, body: KeyTermsBody & { readonly name: string }): Promise<NewKeyAnswer>
  change(user: UserRecord, id: string, body: KeyTermsBody): Promise<ConsoleKey>
  /** Disables the key for good, and leaves it out of lists. */
  archive(user: UserRecord, id: string): Promise<ConsoleKey>
  /** Returns who created, changed and archived keys of the account. For owners. */
  log(user: UserRecord, query: Query): Promise<KeyLog>
  /** Returns a code that `rushes login --web` exchanges for a key. Throws `Refusal`: 400, 403. */
  grantLogin(user: UserRecord, request: LoginRequest): Promise<LoginGrant>
  /** Creates a key for a login code. Throws `Refusal`: 401, 403, 429. */
  exchangeLogin(address: string, code: LoginCode): Promise<NewKeyAnswer>
}

interface ConsoleKeysOptions {
  readonly store: Pick<AccountStore, 'addKey' | 'changeKey' | 'archiveKey'> &
    Pick<ConsoleStore, 'listAccountKeys' | 'findAccountKey' | 'listKeyLog'> &
    Pick<UserStore, 'addLogin' | 'useLogin'>
  readonly clock: Pick<Clock, 'now'>
  readonly limits: Pick<Limits, 'countAuthentication'>
}

export function createConsoleKeys({ store, clock, limits }: ConsoleKeysOptions): ConsoleKeys {
  async function find(user: UserRecord, id: string): Promise<KeyDetails> {
    const key = await store.findAccountKey(idIn(id), user.accountId)
    const isShown = user.role === 'owner' || key?.userId === user.id
    if (key === undefined || !isShown) throw new Refusal('not_found')
    return key
  }

  const create: ConsoleKeys['create'] = async (user, body) => {
    const { apiKey, ...secret } = newKey()
    const nowMs = clock.now()
    const id = await store.addKey({
      ...keyTermsOf(body, nowMs),
      ...secret,
      name: body.name,
      accountId: user.accountId,
      userId: user.id,
      by: user.email,
      nowMs,
    })
    return { key: keyBody(await find(user, String(id))), api_key: apiKey }
  }

  return {
    async list({ id, role, accountId }, query) {
      const before = cursorIn(query, 'before')
      // Read one more row, which shows whether there is another page.
      const includesArchived = choiceIn(query, 'archived', ['true', 'false']) === 'true'
      const found = await store.listAccountKeys({
        ...{ accountId, before, limit: PAGE_SIZE + 1, includesArchived },
        userId: role === 'owner' ? undefined : id,
      })
      const keys = found.slice(0, PAGE_SIZE)
      return {
        keys: keys.map(keyBody),
        next: found.length > PAGE_SIZE ? String(keys.at(-1)?.id) : null,
      }
    },

    create,

    async change(user, id, body) {
      const nowMs = clock.now()
      const terms = keyTermsOf(body, nowMs)
      const key = await find(user, id)
      if (!(await store.changeKey(key.id, terms, { nowMs, by: user.email }))) throw isArchived()
      return keyBody(await find(user, id))
    },

    async archive(user, id) {
      const key = await find(user, id)
      await store.archiveKey(key.id, { nowMs: clock.now(), by: user.email })
      return keyBody(await find(user, id))
    },

    async log({ accountId }, query) {
      const before = cursorIn(query, 'before')
      const found = await store.listKeyLog({ accountId, before, limit: PAGE_SIZE + 1 })
      const entries = found.slice(0, PAGE_SIZE).map(({ id, key, action, fields, by, createdAtMs }) => ({
        ...{ id, key: { ...key, prefix: key.prefix ?? null }, action, fields, by },
        created_at: new Date(createdAtMs).toISOString(),
      }))
      return { entries, next: found.length > PAGE_SIZE ? String(entries.at(-1)?.id) : null }
    },

    async grantLogin({ id: userId }, { challenge, name }) {
      const code = newSecret()
      const nowMs = clock.now()
      const login = { hash: hashOfKey(code), userId, challenge, name: keyNameOf(name) }
      await store.addLogin({ ...login, nowMs, expiresAtMs: nowMs + CODE_MS })
      return { code }
    },

    async exchangeLogin(address, { code, verifier }) {
      await limits.countAuthentication(address)
      // A wrong verifier means that the code leaked, so it is used up in this case too.
      const login = await store.useLogin(hashOfKey(code), clock.now())
      const challenge = createHash('sha256').update(verifier).digest('base64url')
      if (login === undefined || !sameHash(login.challenge, challenge)) throw new Refusal('invalid_code')
      if (login.user.banned) throw new Refusal('account_banned')
      return await create(login.user, { name: login.name })
    },
  }
}

const isArchived = () =>
  refusalSaying('invalid_input', 'This key is archived and cannot be changed. Create another one.')

const keyBody = (key: KeyDetails): ConsoleKey => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix ?? null,
  disabled: key.disabled,
  spent: key.spent,
  spend_limit: key.spendLimit ?? null,
  used: key.used,
  quota: key.quota ?? null,
  allowed_ips: key.allowedIps ?? null,
  expires_at: isoOrNull(key.expiresAtMs),
  rate: key.rate === undefined ? null : formatRate(key.rate),
  created_at: new Date(key.createdAtMs).toISOString(),
  last_used_at: isoOrNull(key.usedAtMs),
  archived_at: isoOrNull(key.archivedAtMs),
})
