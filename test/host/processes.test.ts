import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { isAlive, markFrom, markOf, ownMark, processExists, startText } from '../../src/host/processes.js'

it('knows this process, and tells it from one that had the number before', () => {
  expect(isAlive(markOf(process.pid), 0)).toBe(true)
  expect(isAlive({ pid: process.pid, startedAt: '1' }, 0)).toBe(process.platform !== 'linux')
  expect(isAlive({ pid: process.pid, startedAt: undefined }, 0)).toBe(true)
})

it('knows a process that was killed as gone', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  const mark = markOf(child.pid ?? 0)
  expect(isAlive(mark, 0)).toBe(true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(isAlive(mark, 0)).toBe(false)
  expect(processExists(mark.pid)).toBe(false)
})

it('reads a mark as it was recorded, also one of an earlier version, which has no machine', () => {
  expect(markFrom(process.pid, startText(ownMark()))).toEqual(ownMark())
  expect(markFrom(7, startText({ pid: 7, startedAt: undefined, machine: '0badf00d' }))).toEqual({
    ...{ pid: 7, startedAt: undefined, machine: '0badf00d' },
  })
  expect(markFrom(7, '4711')).toEqual({ pid: 7, startedAt: '4711', machine: undefined })
  expect(markFrom(7, undefined)).toEqual({ pid: 7, startedAt: undefined, machine: undefined })
})

const NOBODY = 2 ** 22 + 1

it.each<[name: string, pid: number, silentMs: number, alive: boolean]>([
  ['with an id that is free here', NOBODY, 0, true],
  ['with the id of this process', process.pid, 299_999, true],
  ['that was silent for five minutes', NOBODY, 300_000, false],
  ['that was silent for five minutes, with the id of this process', process.pid, 300_000, false],
  ['whose clock is ahead', NOBODY, -5_000, true],
  ['recorded before the clock was set back by an hour', NOBODY, -3_600_000, false],
])('a process of another container %s', (_, pid, silentMs, alive) => {
  expect(isAlive({ pid, startedAt: '1', machine: '0badf00d' }, silentMs)).toBe(alive)
})
