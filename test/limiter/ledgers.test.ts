/** One contract, two ledgers. */
import { join } from 'node:path'
import { describe } from 'vitest'
import { createMemoryLedger } from '../../src/limiter/limit-ledger.js'
import { ledgerContract } from '../contract/ledger.js'
import { createManualClock } from '../support/clock.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { createTestLedger } from './ledgers.js'

describe('the ledger of a process', () => {
  ledgerContract({
    isShared: false,
    create() {
      const clock = createManualClock()
      return { open: () => createMemoryLedger(clock), advance: clock.advance }
    },
  })
})

describe('the ledger of a machine', () => {
  ledgerContract({
    isShared: true,
    create() {
      const clock = createManualClock()
      const path = join(temporaryFolder(), 'limits.db')
      return { open: (key) => createTestLedger(clock, path, key), advance: clock.advance }
    },
  })
})
