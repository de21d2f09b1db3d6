import { expect, test } from 'vitest'
import { Refusal } from '../../src/service/rules/refusal.js'
import { createOwnedTurns, createTurns } from '../../src/service/turns.js'

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

const turns = (atOnce: number, maxWaiting = 10) =>
  createTurns({ atOnce, maxWaiting, refusal: () => new Refusal('overloaded') })

test('two at once, the others in order, also after a failure', async () => {
  const { begun, work, end } = createWork()
  const inTurn = turns(2)
  const failed = inTurn(() => Promise.reject(new Error('no')))
  const results = ['a', 'b', 'c', 'd'].map((name) => inTurn(work(name)))
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
  const next = inTurn(work('e'))
  expect(begun.at(-1)).toBe('e')
  end('e')
  await next
})

test('who goes while waiting is dropped, and makes room for another', async () => {
  const { begun, work, end } = createWork()
  const inTurn = turns(1, 1)
  const first = inTurn(work('a'))
  const leaving = new AbortController()
  const left = inTurn(work('b'), leaving.signal)
  await expect(inTurn(work('c'))).rejects.toMatchObject({ code: 'overloaded' })
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  await expect(inTurn(work('d'), leaving.signal)).rejects.toThrow('gone')
  const last = inTurn(work('e'), new AbortController().signal)
  end('a')
  await first
  await expect.poll(() => begun).toEqual(['a', 'e'])
  // In work it is finished: nobody else could use a half of it.
  end('e')
  expect(await last).toBe('e')
})

test('each owner has turns and a queue of its own', async () => {
  const { begun, work, end } = createWork()
  const inTurn = createOwnedTurns({ atOnce: 1, maxWaiting: 1, refusal: () => new Refusal('overloaded') })
  const results = [inTurn(1, work('a')), inTurn(1, work('b')), inTurn(2, work('c'))]
  expect(begun).toEqual(['a', 'c'])
  await expect(inTurn(1, work('d'))).rejects.toMatchObject({ code: 'overloaded' })
  end('a')
  await expect.poll(() => begun).toEqual(['a', 'c', 'b'])
  for (const name of ['b', 'c']) end(name)
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c'])
})
