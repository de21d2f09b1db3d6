/** Limiters of one machine for tests. */
import { join } from 'node:path'
import type { Clock } from '../../src/host/clock.js'
import { Limiter } from '../../src/limiter/index.js'
import { SharedWindow } from '../../src/limiter/shared-window.js'
import { temporaryFolder, whenOver } from '../support/index.js'

/** The slots of one more process. Closed when the test has ended. */
export function openTestWindow(
  clock: Clock,
  path = join(temporaryFolder(), 'limits.db'),
  keyHash = 'a key',
): SharedWindow {
  const window = new SharedWindow({ path, keyHash, clock })
  whenOver(() => window.close())
  return window
}

/** One more process on a file: each call is a neighbour of its own. */
export function createTestLimiter(
  clock: Clock,
  path = join(temporaryFolder(), 'limits.db'),
  keyHash = 'a key',
  onLost: (error: unknown) => void = (error) => {
    throw error
  },
): Limiter {
  const limiter = new Limiter(clock, { open: () => new SharedWindow({ path, keyHash, clock }), onLost })
  whenOver(() => limiter.close())
  return limiter
}
