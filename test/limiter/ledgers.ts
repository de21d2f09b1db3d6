/** Shared ledgers for tests. */
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/host/clock.js'
import { openSharedLedger, type SharedLedger } from '../../src/limiter/shared-ledger.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** One more process on a file: each call is a neighbour of its own. Closed when the test has ended. */
export function createTestLedger(
  clock: Clock,
  path = join(temporaryFolder(), 'limits.db'),
  keyHash = 'a key',
): SharedLedger {
  const ledger = openSharedLedger({ path, keyHash, clock })
  onTestFinished(() => ledger.close())
  return ledger
}
