/**
 * Takes a lock, collects the garbage, prints the id of the lock, and stays: `node --expose-gc lock-process <folder>`.
 * Nothing here refers to the lock, so that only `process-lock.ts` can keep it.
 */
import { setTimeout } from 'node:timers/promises'
import { ProcessLock } from '../../src/host/process-lock.js'

const { id } = new ProcessLock(process.argv[2] ?? '')
for (let turn = 0; turn < 3; turn++) {
  globalThis.gc?.()
  await setTimeout(1)
}
process.stdout.write(id)
setInterval(() => {}, 1_000)
