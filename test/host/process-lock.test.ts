import { mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { withDatabase } from '../../src/host/database.js'
import { isRunning, ProcessLock } from '../../src/host/process-lock.js'
import { built } from '../support/built.js'
import { startNode, temporaryFolder } from '../support/index.js'

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

  it('takes its lock when its id is asked for, and has ended when it ends it', () => {
    const folder = temporaryFolder()
    const lock = new ProcessLock(folder)
    lock.end()
    expect(readdirSync(folder)).toEqual([])
    const { id } = lock
    expect([lock.id, isRunning(folder, id), locks(folder)]).toEqual([id, true, [id]])
    lock.end()
    expect([isRunning(folder, id), locks(folder)]).toEqual([false, []])
    expect(lock.id).not.toBe(id)
    lock.end()
  })

  it('ends its lock where the file cannot be removed, without an error', () => {
    const folder = temporaryFolder()
    const lock = new ProcessLock(folder)
    const { id } = lock
    renameSync(join(folder, 'processes'), join(folder, 'moved'))
    writeFileSync(join(folder, 'processes'), '')
    lock.end()
    rmSync(join(folder, 'processes'))
    renameSync(join(folder, 'moved'), join(folder, 'processes'))
    expect([locks(folder), isRunning(folder, id)]).toEqual([[id], false])
  })

  it('removes the lock file of an ended process after a day, and nothing that is running or no lock', () => {
    const folder = temporaryFolder()
    const take = () => {
      const lock = new ProcessLock(folder)
      onTestFinished(() => lock.end())
      return lock.id
    }
    const [running, old, young] = [take(), '00000000000000aa', '00000000000000bb']
    for (const id of [old, young]) writeFileSync(join(folder, 'processes', id), '')
    const others = ['empty', '00000000000000aa.db']
    for (const name of others) withDatabase(join(folder, 'processes', name), 0, () => {})
    for (const id of [running, old, ...others]) utimesSync(join(folder, 'processes', id), 1, 1)
    expect([running, young, ...others, take()].sort()).toEqual(locks(folder))
  })
})

it.each([
  ['whose lock is gone', NOBODY],
  ['without an id', null],
])('a process %s has ended', (_, id) => {
  expect(isRunning(temporaryFolder(), id)).toBe(false)
})

it('an id from a file of another user leads nowhere', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'processes'))
  writeFileSync(join(folder, 'other'), '')
  expect(isRunning(folder, '../other')).toBe(false)
})
