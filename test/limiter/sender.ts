/** A process on shared slots: `node sender <path> <slots>`. It takes the slots, settles none, and is killed. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/host/clock.js'
import { Limiter } from '../../src/limiter/index.js'
import { SharedWindow } from '../../src/limiter/shared-window.js'

const [path = '', slots = ''] = process.argv.slice(2)
const limiter = new Limiter(systemClock, {
  open: () => new SharedWindow({ path, keyHash: 'a key', clock: systemClock }),
  onLost(error) {
    throw error
  },
})
for (let taken = 0; taken < Number(slots); taken++) {
  await limiter.acquire('status')
  writeSync(1, `${systemClock.monotonic()}\n`)
}
process.kill(process.pid, 'SIGKILL')
