/** Holds a lock, prints its id, and stays: `node lock-process <folder>`. */
import { processLockIn } from '../../src/host/process-lock.js'

process.stdout.write(processLockIn(process.argv[2] ?? '').id)
setInterval(() => {}, 1_000)
