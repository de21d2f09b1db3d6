import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLockKeeper, type LockKeeperOptions } from '../../src/batch/lock/file.js'
import { type Lock, type LockEntry, type Made, NO_LOCK, type Pending } from '../../src/batch/lock/lock.js'

const entry = (name: string): LockEntry => ({ made: undefined, pending: undefined, further: { name } })
const lockOf = (entries: Readonly<Record<string, LockEntry>>): Lock => ({
  ...NO_LOCK,
  entries: new Map(Object.entries(entries)),
})
const keeperOf = (options: Partial<LockKeeperOptions>) =>
  createLockKeeper({
    base: NO_LOCK,
    lock: NO_LOCK,
    read: () => undefined,
    write: async () => true,
    onChanged() {},
    ...options,
  })

it('has a change on the disk before whoever made it continues, and writes those that come together once', async () => {
  const written: Lock[] = []
  let release = () => {}
  const keeper = keeperOf({
    async write(lock) {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      written.push(lock)
      return true
    },
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
  const keeper = keeperOf({
    async write() {
      if (isFull) throw new Error('full')
      return true
    },
  })
  await expect(keeper.set('a', entry('a'))).rejects.toThrow('full')
  isFull = false
  await keeper.set('b', entry('b'))
})

describe('a lock file that somebody else changes meanwhile', () => {
  const made = (run: string) => ({ run, file: `${run}.png` }) as Made
  const accepted = (run: string) => ({ state: 'accepted', run }) as Pending
  const row = (made: Made | undefined, pending?: Pending): LockEntry => ({ made, pending, further: {} })

  async function write(
    base: LockEntry | undefined,
    own: LockEntry | undefined,
    theirs: LockEntry | undefined,
  ) {
    const names = (each: LockEntry | undefined) => lockOf(each === undefined ? {} : { row: each })
    const changed: string[] = []
    let disk = names(theirs)
    const keeper = keeperOf({
      base: names(base),
      lock: names(base),
      read: () => disk,
      async write(lock) {
        disk = lock
        return true
      },
      onChanged: (found) => changed.push(...found),
    })
    await keeper.set('row', own)
    return { entry: disk.entries.get('row'), changed }
  }

  it.each<
    [string, LockEntry | undefined, LockEntry | undefined, LockEntry | undefined, LockEntry | undefined]
  >([
    ['only here', row(made('old')), row(made('own')), row(made('old')), row(made('own'))],
    ['only there', row(made('old')), row(made('old')), row(made('new')), row(made('new'))],
    ['added there', undefined, undefined, row(made('new')), row(made('new'))],
    ['removed there', row(made('old')), row(made('old')), undefined, undefined],
    ['removed here, as its file has gone', row(made('old')), undefined, row(made('old')), undefined],
    [
      'made there while it is under way here',
      row(made('old')),
      row(made('old'), accepted('own')),
      row(made('new')),
      row(made('new'), accepted('own')),
    ],
    [
      'made by both: what was paid for here stays',
      row(made('old')),
      row(made('own')),
      row(made('new')),
      row(made('own')),
    ],
    ['removed there and made here', row(made('old')), row(made('own')), undefined, row(made('own'))],
  ])('is merged: %s', async (_, base, own, theirs, merged) => {
    const written = await write(base, own, theirs)
    expect(written.entry).toEqual(merged)
    expect(written.changed).toEqual(JSON.stringify(base) === JSON.stringify(theirs) ? [] : ['row'])
  })

  it('keeps what this batch has written, also when git has reset the file', async () => {
    let disk = NO_LOCK
    const keeper = keeperOf({
      read: () => disk,
      async write(lock) {
        disk = lock
        return true
      },
    })
    await keeper.set('row', row(undefined, accepted('own')))
    disk = NO_LOCK
    await keeper.write()
    expect(disk.entries.get('row')).toEqual(row(undefined, accepted('own')))
  })

  it('loses no change of either side, in whatever order they are written', async () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd')
    const step = fc.record({ isOwn: fc.boolean(), name, run: fc.uuid() })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        let disk = NO_LOCK
        const keeper = keeperOf({
          read: () => disk,
          async write(lock) {
            disk = lock
            return true
          },
        })
        const last = new Map<string, string>()
        const owned = new Set<string>()
        for (const { isOwn, name, run } of steps) {
          // A row of this batch is written by it alone.
          if (isOwn) {
            owned.add(name)
            await keeper.set(name, row(made(run)))
          } else if (owned.has(name)) continue
          else disk = { ...disk, entries: new Map([...disk.entries, [name, row(made(run))]]) }
          last.set(name, run)
        }
        await keeper.write()
        expect([...disk.entries].map(([key, value]) => [key, value.made?.run]).sort()).toEqual(
          [...last].sort(),
        )
      }),
    )
  })
})
