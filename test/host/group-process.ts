/** Prints whether a group is alive whose leader waits. */
import { spawn } from 'node:child_process'
import { groupIsAlive } from '../../src/host/process-lock.js'

const child = spawn('cat', { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
process.stdout.write(String(groupIsAlive(child.pid ?? 0)))
child.stdin.end()
