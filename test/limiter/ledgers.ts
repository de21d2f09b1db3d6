/** Limiters of one machine for tests. */
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/host/clock.js'
import { Limiter } from '../../src/limiter/index.js'
import { SharedWindow } from '../../src/limiter/shared-window.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** The slots of one more process. Closed when the test has ended. */
export function openTestWindow(
  clock: Clock,
  path = join(temporaryFolder(), 'limits.db'),
  keyHash = 'a key',
): SharedWindow {
  const window = new SharedWindow({ path, keyHash, clock })
  onTestFinished(() => window.close())
  return window
}

interface TestLimiter {
  readonly keyHash?: string
  onLost?(error: unknown): void
}

/** One more process on a file: each call is a neighbour of its own. */
export function createTestLimiter(
  clock: Clock,
  path = join(temporaryFolder(), 'limits.db'),
  {
    keyHash = 'a key',
    onLost = (error) => {
      throw error
    },
  }: TestLimiter = {},
): Limiter {
  const limiter = new Limiter(clock, { open: () => new SharedWindow({ path, keyHash, clock }), onLost })
  onTestFinished(() => limiter.close())
  return limiter
}
