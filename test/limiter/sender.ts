/** Takes and settles slots as fast as the limit allows: `node sender <path> <budget> <limit as JSON>`. Prints the
 * instant of each. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/host/clock.js'
import { createLimiter } from '../../src/limiter/index.js'
import { openSharedLedger } from '../../src/limiter/shared-ledger.js'
import type { Limit } from '../../src/limiter/window.js'

const [path = '', budget = '', limit = ''] = process.argv.slice(2)
const parsed: Limit = JSON.parse(limit)
const ledger = openSharedLedger({ path, budget, limit: parsed, clock: systemClock })
const limiter = createLimiter(parsed, systemClock, { ledger })
for (;;) {
  const grant = await limiter.acquire('status')
  writeSync(1, `${systemClock.monotonic()}\n`)
  grant.settle()
}
