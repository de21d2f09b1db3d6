/** Takes places from a ledger and dies without a word: `node taker <path> <budget> <count>`. */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/host/clock.js'
import { openSharedLedger } from '../../src/limiter/shared-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'

const [path = '', budget = '', count = ''] = process.argv.slice(2)
const ledger = openSharedLedger({ path, budget, limit: RUNS_LIMIT, clock: systemClock })
let taken = 0
while (taken < Number(count) && 'settle' in ledger.take('create')) taken++
writeSync(1, `${taken} places\n`)
process.kill(process.pid, 'SIGKILL')
