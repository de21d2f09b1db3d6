import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { isAlive, markOf, processExists } from '../../src/host/processes.js'

it('knows this process, and tells it from one that had the number before', () => {
  expect(isAlive(markOf(process.pid))).toBe(true)
  expect(isAlive({ pid: process.pid, startedAt: '1' })).toBe(process.platform !== 'linux')
  expect(isAlive({ pid: process.pid, startedAt: undefined })).toBe(true)
})

it('knows a process that was killed as gone', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  const mark = markOf(child.pid ?? 0)
  expect(isAlive(mark)).toBe(true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(isAlive(mark)).toBe(false)
  expect(processExists(mark.pid)).toBe(false)
})
