/** The rate limits of people: of signing in, and of what they do when they are signed in. */
import { hash } from 'node:crypto'
import { AUTH_LIMIT, RUNS_LIMIT, SESSION_CHECK_LIMIT } from '../../protocol/limits.js'
import type { RateLimit, RateLimiter } from '../rate/contract.js'
import { clientOf } from '../rules/networks.js'
import { Refusal } from '../rules/refusal.js'

/** Per user, creates of runs excluded. The page asks once in two seconds, and loads what people click on. */
export const CONSOLE_LIMIT: RateLimit = { requests: 200, windowMs: 10_000 }

/** Per user. Two are made at once, so nobody gets as many; browsers keep what they have seen. */
export const THUMBNAIL_LIMIT: RateLimit = { requests: 600, windowMs: 10_000 }

/** All functions throw `Refusal` (429). What they refuse does not count. */
export interface Limits {
  /** `email` is undefined while it is not known. */
  countAuthentication(address: string, email?: string | undefined): Promise<void>
  /** Without the email: strangers who try its password must not keep the user from setting another one. */
  countPasswordChange(address: string, userId: number | undefined): Promise<void>
  /** `session` is the hash of its token; undefined when there is none. */
  countSessionCheck(address: string, session: string | undefined): Promise<void>
  countRequest(userId: number): Promise<void>
  countThumbnail(userId: number): Promise<void>
  countCreate(userId: number): Promise<void>
}

/** The words keep the keys apart from those of API keys, which are numbers. */
export function createLimits(rateLimiter: RateLimiter): Limits {
  async function take(keys: readonly string[], limit: RateLimit): Promise<void> {
    if (!(await rateLimiter.takeAll(keys, limit))) throw new Refusal('RATE_LIMITED')
  }
  const byAddress = (address: string) => `auth address ${clientOf(address)}`
  return {
    countAuthentication(address, email) {
      // Of any length, and no email is stored for the limit.
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
