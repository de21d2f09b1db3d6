/**
 * The console without HTTP: users sign in, see the runs of their account, create runs, and manage keys and sessions.
 * Routes and cookies are in `http/console/`.
 */
import type { Clock } from '../../host/clock.js'
import type { Kind } from '../../protocol/models.js'
import type { Engine } from '../engines/engine.js'
import type { FileStore } from '../files/contract.js'
import type { RateLimiter } from '../rate/rate-limiter.js'
import { createPasswords, type Passwords } from '../rules/credentials.js'
import type { ServiceStore } from '../store/contract.js'
import { type Credits, createCredits } from './credits.js'
import { type ConsoleKeys, createConsoleKeys } from './keys.js'
import { createLimits, type Limits, withReadTurns } from './limits.js'
import { type ConsoleRuns, createConsoleRuns } from './runs.js'
import { createSessions, type Sessions } from './sessions.js'
import { createThumbnails, type Thumbnails } from './thumbnails.js'

export interface Console {
  readonly sessions: Sessions
  readonly limits: Limits
  readonly runs: ConsoleRuns
  readonly thumbnails: Thumbnails
  readonly keys: ConsoleKeys
  readonly credits: Credits
}

interface ConsoleParts {
  readonly store: ServiceStore
  readonly outputs: Pick<FileStore, 'find' | 'pathOf'>
  readonly clock: Pick<Clock, 'now' | 'alarm' | 'monotonic'>
  readonly rateLimiter: RateLimiter
  readonly models: Readonly<Record<Kind, string>>
  /** Makes thumbnails. If undefined, the list of runs has none. */
  readonly thumbnailEngine: Engine | undefined
  readonly passwords?: Passwords | undefined
  baseUrl(): string
  onError(error: unknown): void
}

export function createConsole(parts: ConsoleParts): Console {
  const { store, outputs, clock, rateLimiter, models, thumbnailEngine, baseUrl, onError } = parts
  const { passwords = createPasswords() } = parts
  const limits = createLimits(rateLimiter)
  const reads = withReadTurns(store)
  return {
    sessions: createSessions({ store, clock, passwords, limits, models, baseUrl, onError }),
    limits,
    runs: createConsoleRuns({ store: reads, hasThumbnails: thumbnailEngine !== undefined, baseUrl }),
    thumbnails: createThumbnails({ store, files: outputs, engine: thumbnailEngine, clock, onError }),
    keys: createConsoleKeys({ store: reads, clock, limits }),
    credits: createCredits({ store: reads, clock }),
  }
}
