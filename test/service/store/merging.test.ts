import { expect, onTestFinished, test, vi } from 'vitest'
import { createMerger } from '../../../src/service/store/postgres/merging.js'

/** A merger whose groups end when the test says so. */
function createGroups() {
  const groups: { readonly items: readonly string[]; end(outcome?: Error): void }[] = []
  const merge = createMerger<string, string>(
    (items) =>
      new Promise((resolve, reject) => {
        groups.push({
          items,
          end: (error) => (error === undefined ? resolve(items.map((item) => `${item}!`)) : reject(error)),
        })
      }),
  )
  return { groups, merge, items: () => groups.map((group) => group.items) }
}

test('the first is made at once and alone; those that arrive meanwhile are made together, in their order', async () => {
  const { groups, merge, items } = createGroups()
  const made = ['a', 'b', 'c'].map((item) => merge(1, item))
  expect(items()).toEqual([['a']])
  groups[0]?.end()
  expect(await made[0]).toBe('a!')
  await expect.poll(items).toEqual([['a'], ['b', 'c']])
  const later = merge(1, 'd')
  groups[1]?.end()
  expect(await Promise.all(made)).toEqual(['a!', 'b!', 'c!'])
  await expect.poll(items).toEqual([['a'], ['b', 'c'], ['d']])
  groups[2]?.end()
  expect(await later).toBe('d!')
  void merge(1, 'e')
  await expect.poll(() => items().at(-1)).toEqual(['e'])
})

test('another key does not wait', () => {
  const { merge, items } = createGroups()
  void merge(1, 'a')
  void merge(2, 'b')
  expect(items()).toEqual([['a'], ['b']])
})

test('no group has more than 100', async () => {
  const { groups, merge } = createGroups()
  for (let n = 0; n <= 250; n++) void merge(1, `${n}`)
  for (let at = 0; at < 4; at++) {
    await expect.poll(() => groups.length).toBe(at + 1)
    groups[at]?.end()
  }
  expect(groups.map((group) => group.items.length)).toEqual([1, 100, 100, 50])
})

test('no group has more than 4 MiB, and a larger one is made alone', async () => {
  const sizes: number[][] = []
  const merge = createMerger<number, number>(
    async (items) => {
      sizes.push([...items])
      return items
    },
    (mebibytes) => mebibytes * 1_048_576,
  )
  await Promise.all([0, 1, 2, 1, 1, 9, 3, 2].map((item) => merge(1, item)))
  expect(sizes).toEqual([[0], [1, 2, 1], [1], [9], [3], [2]])
})

test('an error is that of its group alone', async () => {
  const { groups, merge } = createGroups()
  const [first, second] = [merge(1, 'a'), merge(1, 'b')]
  groups[0]?.end(new Error('no'))
  await expect(first).rejects.toThrow('no')
  await expect.poll(() => groups.length).toBe(2)
  groups[1]?.end()
  expect(await second).toBe('b!')
})

test('nobody waits for a group that hangs', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { groups, merge, items } = createGroups()
  const made = ['a', 'b', 'c'].map((item) => merge(1, item))
  await vi.advanceTimersByTimeAsync(600)
  expect(items()).toEqual([['a'], ['b', 'c']])
  groups[1]?.end()
  expect(await made[2]).toBe('c!')
  groups[0]?.end()
  expect(await made[0]).toBe('a!')
})
