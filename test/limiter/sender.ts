/**
 * A process on a shared ledger: `node sender <path> <limit as JSON> [<slots>]`. It takes and settles slots as fast as the limit
 * allows, and prints the instant of each. With a number of slots, it takes those, settles none, and is killed.
 */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/host/clock.js'
import { createLimiter } from '../../src/limiter/index.js'
import { openSharedLedger } from '../../src/limiter/shared-ledger.js'
import type { Limit } from '../../src/limiter/window.js'

const [path = '', text = '', slots = ''] = process.argv.slice(2)
const limit: Limit = JSON.parse(text)
const ledger = openSharedLedger({ path, keyHash: 'a key', limit, clock: systemClock })
const limiter = createLimiter(limit, systemClock, { ledger })
for (let sent = 1; ; sent++) {
  const grant = await limiter.acquire('status')
  writeSync(1, `${systemClock.monotonic()}\n`)
  if (slots === '') grant.settle()
  else if (sent === Number(slots)) process.kill(process.pid, 'SIGKILL')
}
