import { expect, it } from 'vitest'
import { createLockKeeper } from '../../src/batch/lock/keeper.js'
import { type Lock, type LockEntry, NO_LOCK } from '../../src/batch/lock/lock.js'

const entry = (name: string): LockEntry => ({ made: undefined, pending: undefined, further: { name } })

it('has a change on the disk before whoever made it goes on, and writes those that come together once', async () => {
  const written: Lock[] = []
  let release = () => {}
  const keeper = createLockKeeper(NO_LOCK, async (lock) => {
    await new Promise<void>((resolve) => {
      release = resolve
    })
    written.push(lock)
  })
  const first = keeper.set('a', entry('a'))
  const others = Promise.all([keeper.set('b', entry('b')), keeper.set('c', entry('c'))])
  release()
  await first
  await new Promise((resolve) => setImmediate(resolve))
  release()
  await others
  expect(written.map(({ entries }) => [...entries.keys()])).toEqual([['a'], ['a', 'b', 'c']])
  expect(keeper.entry('b')).toEqual(entry('b'))
})

it('says that it could not be written, and tries again with the next change', async () => {
  let isFull = true
  const keeper = createLockKeeper(NO_LOCK, async () => {
    if (isFull) throw new Error('full')
  })
  await expect(keeper.set('a', entry('a'))).rejects.toThrow('full')
  isFull = false
  await keeper.set('b', entry('b'))
})
