import { expect, test } from 'vitest'
import type { WorkerRecord } from '../../../src/service/store/contract.js'
import { isExpired } from '../../../src/service/worker/lease-expiry.js'

const here = { host: 'studio', pid: 100, bornAtMs: 5_000, processExists: (pid: number) => pid === 200 }

test.each<[name: string, worker: Partial<WorkerRecord>, unchangedMs: number, dead: boolean]>([
  ['a neighbour that exists', { pid: 200 }, 1_000, false],
  ['a neighbour that is gone', { pid: 300 }, 1_000, true],
  ['a neighbour that exists, but has been silent for long', { pid: 200 }, 30_001, true],
  ['a neighbour that has just been silent long enough to worry', { pid: 200 }, 30_000, false],
  ['one on another machine', { host: 'farm', pid: 300 }, 1_000, false],
  ['one on another machine, silent for long', { host: 'farm', pid: 200 }, 40_000, true],
  ['another service in this very process', { pid: 100, bornAtMs: 5_000 }, 1_000, false],
  ['an earlier life under the same process id', { pid: 100, bornAtMs: 4_000 }, 1_000, true],
])('%s', (_name, worker, unchangedMs, dead) => {
  const record = { id: 'w', host: 'studio', pid: 200, bornAtMs: 0, heartbeatAtMs: 39_000, ...worker }
  expect(isExpired(record, unchangedMs, here)).toBe(dead)
})
