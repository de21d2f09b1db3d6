import { expect, test } from 'vitest'
import { createSlots } from '../../src/host/slots.js'

function createWork() {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  return {
    begun,
    work: (name: string) => () =>
      new Promise<string>((resolve) => {
        begun.push(name)
        ends.set(name, () => resolve(name))
      }),
    end: (name: string) => ends.get(name)?.(),
  }
}

const refusal = () => new Error('overloaded')

const slots = (count: number, maxWaiting = 10) => createSlots(count, { maxWaiting, refusal })

test('two at once, the others in order, also after a failure', async () => {
  const { begun, work, end } = createWork()
  const { use } = slots(2)
  const failed = use(() => Promise.reject(new Error('no')))
  const results = ['a', 'b', 'c', 'd'].map((name) => use(work(name)))
  await expect(failed).rejects.toThrow('no')
  await Promise.resolve()
  expect(begun).toEqual(['a', 'b'])
  end('b')
  expect(await results[1]).toBe('b')
  await expect.poll(() => begun).toEqual(['a', 'b', 'c'])
  for (const name of ['a', 'c']) end(name)
  await expect.poll(() => begun).toEqual(['a', 'b', 'c', 'd'])
  end('d')
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd'])
  const next = use(work('e'))
  expect(begun.at(-1)).toBe('e')
  end('e')
  await next
})

test('a call that is aborted while waiting is dropped, and makes room for another', async () => {
  const { begun, work, end } = createWork()
  const { use } = slots(1, 1)
  const first = use(work('a'))
  const leaving = new AbortController()
  const left = use(work('b'), { signal: leaving.signal })
  await expect(use(work('c'))).rejects.toThrow('overloaded')
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  await expect(use(work('d'), { signal: leaving.signal })).rejects.toThrow('gone')
  const last = use(work('e'), { signal: new AbortController().signal })
  end('a')
  await first
  await expect.poll(() => begun).toEqual(['a', 'e'])
  // Running work ends: half of a result is of no use.
  end('e')
  expect(await last).toBe('e')
})
