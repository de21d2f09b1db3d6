/** Which workers are known to have ended, by real processes in containers that share a data folder. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../../src/service/store/contract.js'
import { openSqliteStore } from '../../../src/service/store/sqlite/index.js'
import { built } from '../../support/built.js'
import { containers } from '../../support/containers.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const LIMIT = { crashes: 3, failure: { code: 'renderer_crashed', message: 'gave up' } }

function opened(data: string): Store {
  const store = openSqliteStore(join(data, 'service.db'))
  onTestFinished(() => store.close())
  return store
}

let program: string
beforeAll(async () => {
  program = await built(new URL('./worker-process.ts', import.meta.url))
})

/** A process with the lease of the worker `held`. */
async function hold(data: string, words: readonly string[]) {
  const [command = '', ...rest] = [...words, process.execPath, program, data, 'hold']
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return {
    kill: async () => {
      child.kill('SIGKILL')
      // The last process that could write to it has ended.
      await once(child.stdout, 'close')
    },
  }
}

async function list(data: string, words: readonly string[]): Promise<unknown> {
  const [command = '', ...rest] = [...words, process.execPath, program, data, 'list']
  return JSON.parse((await promisify(execFile)(command, rest)).stdout)
}

test.each(containers)('%s, a worker counts as ended only after its process was killed', async (_, words) => {
  const data = temporaryFolder()
  const holder = await hold(data, words)
  expect(await list(data, words)).toMatchObject([{ id: 'held', hasEnded: false }])
  await holder.kill()
  expect(await list(data, words)).toMatchObject([{ id: 'held', hasEnded: true }])
})

test('a missing or unreadable lock does not count as an ended worker', async () => {
  const data = temporaryFolder()
  const [one, other] = [opened(data), opened(data)]
  await one.renewLease('w')
  const path = join(data, 'processes', 'w')
  await one.close()
  expect(await other.listWorkers()).toMatchObject([{ id: 'w', hasEnded: true }])
  rmSync(path)
  expect(await other.listWorkers()).toMatchObject([{ id: 'w', hasEnded: false }])
  copyFileSync(process.execPath, path)
  expect(await other.listWorkers()).toMatchObject([{ id: 'w', hasEnded: false }])
})

test('a live worker that was reaped holds a lock again with its next lease', async () => {
  const data = temporaryFolder()
  const [one, other] = [opened(data), opened(data)]
  await one.renewLease('w')
  const [worker] = await other.listWorkers()
  expect(worker?.hasEnded).toBe(false)
  await other.reapWorker({ id: 'w', heartbeatAtMs: worker?.heartbeatAtMs ?? 0 }, LIMIT, 1)
  expect(readdirSync(join(data, 'processes'))).toEqual([])
  await one.renewLease('w')
  expect(await other.listWorkers()).toMatchObject([{ id: 'w', hasEnded: false }])
  expect(existsSync(join(data, 'processes', 'w'))).toBe(true)
})

test('a lock is removed with its row, and one without a row later', async () => {
  const data = temporaryFolder()
  const one = opened(data)
  await one.renewLease('a')
  await one.renewLease('b')
  await one.releaseWorker('a')
  await one.close()
  const path = (name: string) => join(data, 'processes', name)
  writeFileSync(path('new'), '')
  // Found to be free five minutes ago.
  writeFileSync(path('old'), '0')
  for (const name of ['b', 'old']) utimesSync(path(name), 1, 1)
  await opened(data).renewLease('c')
  expect(readdirSync(join(data, 'processes')).sort()).toEqual(['b', 'c', 'new'])
})
