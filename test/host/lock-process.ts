/** Holds a lock, prints its id, and stays: `node lock-process <folder>`. */
import { processLockIn } from '../../src/host/process-lock.js'

const lock = processLockIn(process.argv[2] ?? '')
process.stdout.write(lock.id)
setInterval(() => {}, 1_000)
// Keeps the lock from being collected. The bundler removes a reference without an effect.
process.once('exit', () => lock.end(true))
