/** The API keys of an account, which users manage on the console. Without HTTP. */
import type { Clock } from '../../host/clock.js'
import type { ConsoleKey, KeyList, KeyTermsBody, NewKeyAnswer } from '../../protocol/console.js'
import { formatRate } from '../rate/rate-limiter.js'
import { cursorIn, idIn, type Query } from '../rules/console-requests.js'
import { keyTermsOf } from '../rules/key-terms.js'
import { Refusal } from '../rules/refusal.js'
import { isoOrNull } from '../rules/times.js'
import { newKey } from '../secrets.js'
import type { KeyDetails } from '../store/account-store.js'
import type { UserRecord } from '../store/console-store.js'
import type { ServiceStore } from '../store/contract.js'

const PAGE_SIZE = 100

/**
 * `id` is an unchecked value of a request. All functions throw `Refusal`: 404 for a key of another account, 409 for one active
 * key too many.
 */
export interface ConsoleKeys {
  list(user: UserRecord, query: Query): Promise<KeyList>
  create(user: UserRecord, body: KeyTermsBody & { readonly name: string }): Promise<NewKeyAnswer>
  change(user: UserRecord, id: string, body: KeyTermsBody): Promise<ConsoleKey>
}

interface ConsoleKeysOptions {
  readonly store: ServiceStore
  readonly clock: Clock
}

export function createConsoleKeys({ store, clock }: ConsoleKeysOptions): ConsoleKeys {
  async function find(user: UserRecord, id: string): Promise<KeyDetails> {
    const key = await store.findAccountKey(idIn(id), user.accountId)
    if (key === undefined) throw new Refusal('not_found')
    return key
  }

  return {
    async list({ accountId }, query) {
      const before = cursorIn(query, 'before')
      const found = await store.listAccountKeys({ accountId, before, limit: PAGE_SIZE + 1 })
      const { items, next } = pageOf(found)
      return { keys: items.map(keyBody), next }
    },

    async create(user, body) {
      const { apiKey, ...secret } = newKey()
      const nowMs = clock.now()
      const id = await store.addKey({
        ...keyTermsOf(body, nowMs),
        ...secret,
        name: body.name,
        accountId: user.accountId,
        nowMs,
      })
      return { key: keyBody(await find(user, String(id))), api_key: apiKey }
    },

    async change(user, id, body) {
      const terms = keyTermsOf(body, clock.now())
      const key = await find(user, id)
      await store.changeKey(key.id, terms)
      return keyBody(await find(user, id))
    },
  }
}

/** `found`: the rows of one page, and one more row if there is another page. */
function pageOf<Row extends { readonly id: number }>(found: readonly Row[]) {
  const items = found.slice(0, PAGE_SIZE)
  return { items, next: found.length > PAGE_SIZE ? String(items.at(-1)?.id) : null }
}

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
})
