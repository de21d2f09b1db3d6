/** A process on a shared ledger: `node sender <path> <slots>`. It takes the slots, settles none, and is killed. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/host/clock.js'
import { createLimiter } from '../../src/limiter/index.js'
import { openSharedLedger } from '../../src/limiter/shared-ledger.js'

const [path = '', slots = ''] = process.argv.slice(2)
const ledger = openSharedLedger({ path, keyHash: 'a key', clock: systemClock })
const limiter = createLimiter(systemClock, ledger)
for (let taken = 0; taken < Number(slots); taken++) {
  await limiter.acquire('status')
  writeSync(1, `${systemClock.monotonic()}\n`)
}
process.kill(process.pid, 'SIGKILL')
