import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { machineId } from '../../../src/host/processes.js'
import {
  hasEnded,
  thisProcess,
  type WorkerProcess,
} from '../../../src/service/store/sqlite/worker-process.js'

const here = { host: 'studio', pid: 100, bornAtMs: 5_000, processExists: (pid: number) => pid === 200 }

test.each<[name: string, worker: Partial<WorkerProcess>, ended: boolean]>([
  ['a neighbour that exists', { pid: 200 }, false],
  ['a neighbour that is gone', { pid: 300 }, true],
  ['one on another machine', { host: 'farm', pid: 300 }, false],
  ['one of another container with the same host name', { host: 'studio pid:[2]', pid: 300 }, false],
  ['another service in this very process', { pid: 100, bornAtMs: 5_000 }, false],
  ['an earlier process with the same id', { pid: 100, bornAtMs: 4_000 }, true],
])('%s', (_name, worker, ended) => {
  expect(hasEnded({ host: 'studio', pid: 200, bornAtMs: 0, ...worker }, here)).toBe(ended)
})

test('this process is known by its container too', () => {
  expect(thisProcess().host).toBe(`${hostname()} ${machineId()}`.trim())
})
