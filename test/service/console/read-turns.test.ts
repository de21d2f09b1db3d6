import { expect, test } from 'vitest'
import { createCredits } from '../../../src/service/console/credits.js'
import { withReadTurns } from '../../../src/service/console/read-turns.js'
import type { FoundRuns } from '../../../src/service/store/console-store.js'
import type { ServiceStore } from '../../../src/service/store/service-store.js'

/** A store whose lists of runs end when the test says so. */
function createSlowStore() {
  const begun: number[] = []
  const ends: (() => void)[] = []
  const store: Partial<ServiceStore> = {
    listRuns: ({ accountId }) =>
      new Promise<FoundRuns>((resolve) => {
        begun.push(accountId)
        ends.push(() => resolve({ runs: [], next: undefined }))
      }),
    findRuns: async () => [],
    listAccountEntries: async () => [],
  }
  return { reads: withReadTurns(store as ServiceStore), begun, endNext: () => ends.shift()?.() }
}

test('an account reads one page at a time, and others come between', async () => {
  const { reads, begun, endNext } = createSlowStore()
  const list = (accountId: number) => reads.listRuns({ accountId, limit: 1 })
  const pages = [list(1), list(1), list(2)]
  const found = reads.findRuns(['a'], 1)
  expect(begun).toEqual([1, 2])
  endNext()
  await expect.poll(() => begun).toEqual([1, 2, 1])
  for (let n = 0; n < 2; n++) endNext()
  await Promise.all([...pages, found])
})

test('of one account 50 wait, and more are refused', async () => {
  const { reads, endNext } = createSlowStore()
  const list = (accountId: number) => reads.listRuns({ accountId, limit: 1 })
  const pages = Array.from({ length: 51 }, () => list(1))
  await expect(list(1)).rejects.toMatchObject({ code: 'overloaded', status: 503 })
  const other = list(2)
  for (let n = 0; n < 52; n++) {
    endNext()
    await new Promise(setImmediate)
  }
  await Promise.all([...pages, other])
})

test('a response that has begun gets its turn, however many wait', async () => {
  const { reads, endNext } = createSlowStore()
  const pages = Array.from({ length: 51 }, () => reads.listRuns({ accountId: 1, limit: 1 }))
  const parts = createCredits({ store: reads, clock: { now: () => 0 } }).csv(1, {})
  await expect(parts.next()).rejects.toMatchObject({ code: 'overloaded' })
  const more = reads.listMoreEntries({ accountId: 1, limit: 1 })
  for (let n = 0; n < 51; n++) {
    endNext()
    await new Promise(setImmediate)
  }
  expect(await more).toEqual([])
  await Promise.all(pages)
})
