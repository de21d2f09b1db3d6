/** Limits for console users: rates of sign-ins and of requests with a session, and one read of an account at a time. */
import { hash } from 'node:crypto'
import { createOwnedSlots } from '../../host/slots.js'
import { AUTH_LIMIT, RUNS_LIMIT, SESSION_CHECK_LIMIT } from '../../protocol/limits.js'
import type { RateLimit, RateLimiter } from '../rate/rate-limiter.js'
import { clientOf } from '../rules/networks.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import type { ServiceStore } from '../store/contract.js'

/**
 * Limit per user, without creates. The page sends a request every two seconds, and loads the items that users click.
 */
const CONSOLE_LIMIT: RateLimit = { requests: 200, windowMs: 10_000 }

/**
 * Limit per user. Higher than the rate at which the service can make thumbnails, two at a time; browsers cache them.
 */
const THUMBNAIL_LIMIT: RateLimit = { requests: 600, windowMs: 10_000 }

/** Maximum number of waiting reads of one account, which may have several users with several tabs each. */
const MAX_WAITING_READS = 50

/** All functions throw `Refusal` (429). Refused requests do not count. */
export interface Limits {
  /** `email` is undefined while it is unknown. */
  countAuthentication(address: string, email?: string | undefined): Promise<void>
  /** Does not count by email: strangers who try the email's password must not prevent the user from changing it. */
  countPasswordChange(address: string, userId: number | undefined): Promise<void>
  /** `session` is the hash of the session's token; undefined without a session. */
  countSessionCheck(address: string, session: string | undefined): Promise<void>
  countRequest(userId: number): Promise<void>
  countThumbnail(userId: number): Promise<void>
  countCreate(userId: number): Promise<void>
}

/** Keys in the rate limiter begin with a word, to differ from API keys, which have a number. */
export function createLimits(rateLimiter: RateLimiter): Limits {
  async function take(keys: readonly string[], limit: RateLimit): Promise<void> {
    if (!(await rateLimiter.take(keys, limit))) throw new Refusal('RATE_LIMITED')
  }
  const byAddress = (address: string) => `auth address ${clientOf(address)}`
  return {
    countAuthentication(address, email) {
      // Hash the email: it can have any length, and must not be stored for the limit.
      const byEmail = email === undefined ? [] : [`auth email ${hash('sha256', email, 'hex')}`]
      return take([byAddress(address), ...byEmail], AUTH_LIMIT)
    },
    countPasswordChange: (address, userId) =>
      take([byAddress(address), ...(userId === undefined ? [] : [`password user ${userId}`])], AUTH_LIMIT),
    countSessionCheck: (address, session) =>
      take([`session ${session ?? `address ${clientOf(address)}`}`], SESSION_CHECK_LIMIT),
    countRequest: (userId) => take([`console user ${userId}`], CONSOLE_LIMIT),
    countThumbnail: (userId) => take([`thumbnail user ${userId}`], THUMBNAIL_LIMIT),
    countCreate: (userId) => take([`create user ${userId}`], RUNS_LIMIT),
  }
}

export interface ReadTurns extends ServiceStore {
  /** Like `listAccountEntries`, but never refused: for the rest of a response that has begun. */
  readonly listMoreEntries: ServiceStore['listAccountEntries']
}

/**
 * Returns the store with one read (page, list, search or sum) of an account at a time, so that other accounts get their
 * turn. Further reads wait; too many throw `Refusal` (503).
 */
export function withReadTurns(store: ServiceStore): ReadTurns {
  const inTurn = createOwnedSlots(1, {
    maxWaiting: MAX_WAITING_READS,
    refusal: () =>
      refusalSaying('overloaded', 'Too many reads of this account are waiting. Try again in a moment.'),
  })
  return {
    ...store,
    listRuns: (filter) => inTurn(filter.accountId, () => store.listRuns(filter)),
    findRuns: (ids, accountId) => inTurn(accountId, () => store.findRuns(ids, accountId)),
    listAccountKeys: (page) => inTurn(page.accountId, () => store.listAccountKeys(page)),
    listAccountEntries: (filter) => inTurn(filter.accountId, () => store.listAccountEntries(filter)),
    spendPerDay: (accountId, fromMs) => inTurn(accountId, () => store.spendPerDay(accountId, fromMs)),
    listMoreEntries: (filter) =>
      inTurn(filter.accountId, () => store.listAccountEntries(filter), { isExempt: true }),
  }
}
