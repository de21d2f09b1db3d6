import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withDatabase } from '../../src/host/database.js'
import { isLocked, isRunning, ProcessLock, runningIn, takeLock } from '../../src/host/process-lock.js'
import { built } from '../support/built.js'
import { startNode, temporaryFolder } from '../support/index.js'

const FIVE_MINUTES_MS = 300_000
const NOBODY = '0badf00d0badf00d'

let program: string
beforeAll(async () => {
  program = await built(new URL('./lock-process.ts', import.meta.url))
})

const locks = (folder: string): readonly string[] => readdirSync(join(folder, 'processes')).sort()

describe('a process', () => {
  it('counts as running while it holds its lock, also after garbage was collected, and as ended afterwards', async () => {
    const folder = temporaryFolder()
    const child = startNode(['--expose-gc', program, folder])
    const [id] = await child.prints('stdout', /\w{16}/)
    expect(isRunning(folder, id)).toBe(true)
    // Looking releases nothing.
    expect(isRunning(folder, id)).toBe(true)
    child.kill('SIGKILL')
    await child.ended
    expect(isRunning(folder, id)).toBe(false)
  })

  it('takes its lock when its id is asked for, and leaves a file only where records name it', () => {
    const folder = temporaryFolder()
    const lock = new ProcessLock(folder)
    lock.end()
    expect(readdirSync(folder)).toEqual([])
    const { id } = lock
    expect([lock.id, isRunning(folder, id), locks(folder)]).toEqual([id, true, [id]])
    lock.end()
    expect([isRunning(folder, id), locks(folder)]).toEqual([undefined, []])
    const named = lock.id
    expect(named).not.toBe(id)
    lock.end(true)
    expect([isRunning(folder, named), locks(folder)]).toEqual([false, [named]])
  })

  it('removes the lock file of an ended process after a day, and nothing that is running or no lock', () => {
    const folder = temporaryFolder()
    const take = () => {
      const lock = new ProcessLock(folder)
      onTestFinished(() => lock.end())
      return lock.id
    }
    const [running, old, young, notes] = [take(), '00000000000000aa', '00000000000000bb', NOBODY]
    for (const id of [old, young]) writeFileSync(join(folder, 'processes', id), '')
    writeFileSync(join(folder, 'processes', notes), 'notes of somebody else\n'.repeat(50))
    const others = ['empty', '00000000000000aa.db']
    for (const name of others) withDatabase(join(folder, 'processes', name), 0, () => {})
    for (const id of [running, old, notes, ...others]) utimesSync(join(folder, 'processes', id), 1, 1)
    expect([running, young, notes, ...others, take()].sort()).toEqual(locks(folder))
  })

  it('leaves no free lock behind when it cannot take its own', () => {
    const path = join(temporaryFolder(), NOBODY)
    writeFileSync(path, '')
    withDatabase(path, 0, (database) => {
      database.exec('BEGIN EXCLUSIVE')
      expect(takeLock(path)).toBeUndefined()
    })
    expect(isLocked(path)).toBeUndefined()
  })
})

it.each<[name: string, id: string | null, silentMs: number, runs: boolean]>([
  ['of which nothing is proven', NOBODY, FIVE_MINUTES_MS - 1, true],
  ['that was silent for five minutes', NOBODY, FIVE_MINUTES_MS, false],
  ['whose clock is ahead', NOBODY, -5_000, true],
  ['recorded before the clock was set back by an hour', NOBODY, -3_600_000, false],
  ['of an earlier version', '4711@1f0e9a3c', FIVE_MINUTES_MS - 1, true],
  ['of an earlier version that was silent for five minutes', null, FIVE_MINUTES_MS, false],
])('a process %s', (_, id, silentMs, runs) => {
  expect(runningIn(temporaryFolder())(id, silentMs)).toBe(runs)
})

it('an id from a file of another user leads nowhere', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'processes'))
  writeFileSync(join(folder, 'other'), '')
  expect(isRunning(folder, '../other')).toBeUndefined()
})
