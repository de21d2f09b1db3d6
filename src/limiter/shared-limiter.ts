/** Opens the limiter of a key that all processes of the machine share. */
import { join } from 'node:path'
import { newerState, RushesError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { NewerFormat } from '../host/database.js'
import { describeError } from '../host/system-error.js'
import { Limiter } from './index.js'
import { keyHashOf, SharedWindow } from './shared-window.js'

const LIMITS_FILE = 'limits.db'

interface SharedLimiterOptions {
  /** The state folder. */
  readonly folder: string
  readonly origin: string
  readonly apiKey: string
  readonly clock: Clock
  warn(message: string): void
}

/** Throws `usage` for a newer format. Where the file cannot be used otherwise, the process keeps its own limit. */
export function openSharedLimiter({ folder, origin, apiKey, clock, warn }: SharedLimiterOptions): Limiter {
  const path = join(folder, LIMITS_FILE)
  return new Limiter(clock, {
    open: () => new SharedWindow({ path, clock, keyHash: keyHashOf(origin, apiKey) }),
    onLost(error) {
      if (error instanceof NewerFormat) throw newerState(folder, error)
      warn(
        'The rate limit applies to this process alone from now on, not to all rushes processes. ' +
          `${error instanceof RushesError ? error.message : `Cannot use ${describeError(error, path)}.`}`,
      )
    },
  })
}
