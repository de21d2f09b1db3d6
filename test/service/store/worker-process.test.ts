import { expect, test } from 'vitest'
import { hasEnded, type WorkerProcess } from '../../../src/service/store/sqlite/worker-process.js'

const here = { host: 'studio', pid: 100, bornAtMs: 5_000, processExists: (pid: number) => pid === 200 }

test.each<[name: string, worker: Partial<WorkerProcess>, ended: boolean]>([
  ['a neighbour that exists', { pid: 200 }, false],
  ['a neighbour that is gone', { pid: 300 }, true],
  ['one on another machine', { host: 'farm', pid: 300 }, false],
  ['another service in this very process', { pid: 100, bornAtMs: 5_000 }, false],
  ['an earlier process with the same id', { pid: 100, bornAtMs: 4_000 }, true],
])('%s', (_name, worker, ended) => {
  expect(hasEnded({ host: 'studio', pid: 200, bornAtMs: 0, ...worker }, here)).toBe(ended)
})
