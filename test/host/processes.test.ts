import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { groupIsAlive } from '../../src/host/process-lock.js'
import { built } from '../support/built.js'
import { containers } from '../support/containers.js'

let program: string
beforeAll(async () => {
  program = await built(new URL('./group-process.ts', import.meta.url))
})

it('a group is alive until its last member has ended', async () => {
  const child = spawn('sh', ['-c', 'cat; exit 0'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  const { pid = 0 } = child
  expect(groupIsAlive(pid)).toBe(true)
  child.stdin.end()
  await once(child, 'close')
  expect(groupIsAlive(pid)).toBe(false)
})

it.each(containers)('%s: a group with a running member is alive', async (_, words) => {
  const [command = '', ...rest] = [...words, process.execPath, program]
  expect((await promisify(execFile)(command, rest)).stdout).toBe('true')
})
