/** `rushes login --web`: a code that a signed-in user grants, and the key that the command gets for it. Without HTTP. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../host/clock.js'
import type { LoginCode, LoginGrant, LoginRequest, NewKeyAnswer } from '../../protocol/console.js'
import { keyNameOf } from '../rules/key-terms.js'
import { Refusal } from '../rules/refusal.js'
import { hashOfKey, newSecret, sameHash } from '../secrets.js'
import type { UserRecord, UserStore } from '../store/user-store.js'
import type { ConsoleKeys } from './keys.js'
import type { Limits } from './limits.js'

/** Longer than the window of the limit, so that a command can wait for it. */
const CODE_MS = 120_000

export interface Logins {
  /** Throws `Refusal`: 400, 403. */
  grant(user: UserRecord, request: LoginRequest): Promise<LoginGrant>
  /** Throws `Refusal`: 401, 403, 429. */
  exchange(address: string, code: LoginCode): Promise<NewKeyAnswer>
}

export interface LoginsOptions {
  readonly store: Pick<UserStore, 'addLogin' | 'useLogin'>
  readonly clock: Pick<Clock, 'now'>
  readonly keys: Pick<ConsoleKeys, 'create'>
  readonly limits: Pick<Limits, 'countAuthentication'>
}

export function createLogins({ store, clock, keys, limits }: LoginsOptions): Logins {
  return {
    async grant({ id: userId }, { challenge, name }) {
      const code = newSecret()
      const nowMs = clock.now()
      const login = { hash: hashOfKey(code), userId, challenge, name: keyNameOf(name) }
      await store.addLogin({ ...login, nowMs, expiresAtMs: nowMs + CODE_MS })
      return { code }
    },

    async exchange(address, { code, verifier }) {
      await limits.countAuthentication(address)
      // A code with a wrong verifier is used up too: somebody else has it.
      const login = await store.useLogin(hashOfKey(code), clock.now())
      const challenge = createHash('sha256').update(verifier).digest('base64url')
      if (login === undefined || !sameHash(login.challenge, challenge)) throw new Refusal('invalid_code')
      if (login.banned) throw new Refusal('account_banned')
      return await keys.create(login.accountId, { name: login.name })
    },
  }
}
