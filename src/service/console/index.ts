/**
 * The console without HTTP: people sign in, look at the runs of their account, create runs, and manage keys and sessions. Routes
 * and cookies are in `http/console/`.
 */
import type { Clock } from '../../host/clock.js'
import type { Kind } from '../../protocol/models.js'
import type { RateLimiter } from '../rate/contract.js'
import { createPasswords, type Passwords } from '../rules/password.js'
import type { ServiceStore } from '../store/service-store.js'
import { type Credits, createCredits } from './credits.js'
import { type ConsoleKeys, createConsoleKeys } from './keys.js'
import { createLimits, type Limits } from './limits.js'
import { createLogins, type Logins } from './logins.js'
import { type ConsoleRuns, createConsoleRuns } from './runs.js'
import { createSessions, type Sessions } from './sessions.js'
import { createSigningIn, type SigningIn } from './signing-in.js'

export interface Console {
  readonly signingIn: SigningIn
  readonly sessions: Sessions
  readonly limits: Limits
  readonly runs: ConsoleRuns
  readonly keys: ConsoleKeys
  readonly credits: Credits
  readonly logins: Logins
}

export interface ConsoleParts {
  readonly store: ServiceStore
  readonly clock: Pick<Clock, 'now'>
  readonly rateLimiter: RateLimiter
  readonly models: Readonly<Record<Kind, string>>
  readonly passwords?: Passwords | undefined
  baseUrl(): string
  onError(error: unknown): void
}

export function createConsole(parts: ConsoleParts): Console {
  const { store, clock, rateLimiter, models, passwords = createPasswords(), baseUrl, onError } = parts
  const limits = createLimits(rateLimiter)
  const sessions = createSessions({ store, clock, onError })
  const keys = createConsoleKeys({ store, clock })
  return {
    signingIn: createSigningIn({ store, clock, passwords, sessions, limits, models, baseUrl }),
    sessions,
    limits,
    runs: createConsoleRuns({ store, baseUrl }),
    keys,
    credits: createCredits({ store, clock }),
    logins: createLogins({ store, clock, keys, limits }),
  }
}
