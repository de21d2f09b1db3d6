import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { groupIsAlive } from '../../src/host/process-lock.js'

it('a process group is alive until its last member has ended', async () => {
  const child = spawn('sh', ['-c', 'cat; exit 0'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  const { pid = 0 } = child
  expect(groupIsAlive(pid)).toBe(true)
  child.stdin.end()
  await once(child, 'close')
  expect(groupIsAlive(pid)).toBe(false)
})
