/** The API keys of an account, as the people of the account manage them. Without HTTP. */
import type { Clock } from '../../host/clock.js'
import type { ConsoleKey, KeyList, KeyTermsBody, NewKeyAnswer } from '../../protocol/console.js'
import { formatRate } from '../rate/rate-text.js'
import { keyTermsOf } from '../rules/key-terms.js'
import { cursorIn, type Query } from '../rules/query.js'
import { Refusal } from '../rules/refusal.js'
import { isoOrNull } from '../rules/times.js'
import { hashOfKey, newKey, prefixOfKey } from '../secrets.js'
import type { AccountStore, KeyDetails } from '../store/account-store.js'
import type { ConsoleStore } from '../store/console-store.js'

/** A program that has the old secret must get the new one in this time. */
export const ROTATION_MS = 24 * 3_600_000

const PAGE_SIZE = 100

/**
 * `id` is that of a request, and may be anything. All throw `Refusal`: 404 for a key of another account, 409 for one active key too
 * many.
 */
export interface ConsoleKeys {
  list(accountId: number, query: Query): Promise<KeyList>
  create(accountId: number, body: KeyTermsBody & { readonly name: string }): Promise<NewKeyAnswer>
  change(accountId: number, id: string, body: KeyTermsBody): Promise<ConsoleKey>
  rotate(accountId: number, id: string): Promise<NewKeyAnswer>
}

export interface ConsoleKeysOptions {
  readonly store: Pick<AccountStore, 'addKey' | 'changeKey' | 'rotateKey'> &
    Pick<ConsoleStore, 'listAccountKeys' | 'findAccountKey'>
  readonly clock: Pick<Clock, 'now'>
}

export function createConsoleKeys({ store, clock }: ConsoleKeysOptions): ConsoleKeys {
  const keyBody = (key: KeyDetails): ConsoleKey => consoleKeyOf(key, clock.now())

  async function find(accountId: number, id: string): Promise<KeyDetails> {
    const key = await store.findAccountKey(keyIdOf(id), accountId)
    if (key === undefined) throw new Refusal('not_found')
    return key
  }

  return {
    async list(accountId, query) {
      const before = cursorIn(query, 'before')
      // One more tells whether there is another page.
      const found = await store.listAccountKeys({ accountId, before, limit: PAGE_SIZE + 1 })
      const keys = found.slice(0, PAGE_SIZE)
      return {
        keys: keys.map(keyBody),
        next: found.length > PAGE_SIZE ? String(keys.at(-1)?.id) : null,
      }
    },

    async create(accountId, body) {
      const apiKey = newKey()
      const nowMs = clock.now()
      const id = await store.addKey({
        ...keyTermsOf(body, nowMs),
        name: body.name,
        accountId,
        hash: hashOfKey(apiKey),
        prefix: prefixOfKey(apiKey),
        nowMs,
      })
      return { key: keyBody(await find(accountId, String(id))), api_key: apiKey }
    },

    async change(accountId, id, body) {
      const terms = keyTermsOf(body, clock.now())
      const key = await find(accountId, id)
      await store.changeKey(key.id, terms)
      return keyBody(await find(accountId, id))
    },

    async rotate(accountId, id) {
      const key = await find(accountId, id)
      const apiKey = newKey()
      await store.rotateKey(key.id, {
        hash: hashOfKey(apiKey),
        prefix: prefixOfKey(apiKey),
        oldUntilMs: clock.now() + ROTATION_MS,
      })
      return { key: keyBody(await find(accountId, id)), api_key: apiKey }
    },
  }
}

/** No key has the number 0. */
const keyIdOf = (text: string): number => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0)

function consoleKeyOf(key: KeyDetails, nowMs: number): ConsoleKey {
  const { rotatesUntilMs: until } = key
  return {
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
    rotates_until: until !== undefined && nowMs < until ? isoOrNull(until) : null,
  }
}
