import { expect, test } from 'vitest'
import type { Store } from '../../../src/service/store/contract.js'
import { rememberReads, UNSEEN_MS } from '../../../src/service/store/remembered.js'

/** A store of one run whose model is a number that every reading of it raises, and what surrounds it. */
function createCounted() {
  const world = { reads: 0, version: 1, now: 0, prompt: 'a fox', missing: false }
  const parts = {
    findRun: async (id: string, accountId: number) => {
      world.reads++
      return world.missing ? undefined : { id, accountId, input: { prompt: world.prompt } }
    },
    failRun: async () => true,
    keepWorker: async () => {},
  }
  const make = () =>
    rememberReads(parts as unknown as Store, { version: () => world.version, now: () => world.now })
  return { world, store: make(), neighbour: make() }
}

const failure = { code: 'x', message: 'x' }
const held = { id: 'r', owner: 'w', nowMs: 0 }

test('what was read is read once, for each of those who ask', async () => {
  const { world, store } = createCounted()
  expect(await store.findRun('r', 1)).toEqual(await store.findRun('r', 1))
  expect(world.reads).toBe(1)
  await store.findRun('r', 2)
  await store.findRun('s', 1)
  expect(world.reads).toBe(3)
})

test.each(['store', 'neighbour'] as const)('what the %s writes is seen at once', async (who) => {
  const counted = createCounted()
  await counted.store.findRun('r', 1)
  await counted[who].failRun(held, failure)
  await counted.store.findRun('r', 1)
  expect(counted.world.reads).toBe(2)
})

test('a heartbeat changes nothing that is remembered', async () => {
  const { world, store } = createCounted()
  await store.findRun('r', 1)
  await store.keepWorker({ id: 'w', host: 'h', pid: 1, bornAtMs: 0, heartbeatAtMs: 0 })
  await store.findRun('r', 1)
  expect(world.reads).toBe(1)
})

test('what another process writes is seen a few milliseconds later', async () => {
  const { world, store } = createCounted()
  await store.findRun('r', 1)
  world.version++
  world.now = UNSEEN_MS
  await store.findRun('r', 1)
  expect(world.reads).toBe(1)
  world.now += 1
  await store.findRun('r', 1)
  expect(world.reads).toBe(2)
})

test('what is not there is asked for again, and what is long is not kept', async () => {
  const { world, store } = createCounted()
  world.missing = true
  expect(await store.findRun('r', 1)).toBeUndefined()
  world.missing = false
  expect(await store.findRun('r', 1)).toBeDefined()
  world.prompt = 'x'.repeat(100_000)
  await store.findRun('long', 1)
  await store.findRun('long', 1)
  expect(world.reads).toBe(4)
})
