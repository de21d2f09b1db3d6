/** Several nodes on one database. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { RUNS_PATH } from '../../../src/protocol/id.js'
import { LOCAL_MODELS } from '../../../src/service/names.js'
import { createReadiness } from '../../../src/service/node.js'
import { createWorkerLease } from '../../../src/service/worker/worker-lease.js'
import { createManualClock } from '../../support/clock.js'
import { createCommandedEngine } from '../../support/engines.js'
import {
  canRestartPostgres,
  describePostgres,
  openTestStore,
  sharedPostgres,
  startPostgres,
  temporaryDatabase,
} from '../../support/postgres.js'
import { createPostgresProxy } from '../../support/postgres-proxy.js'
import { claimRun, newRun } from '../../support/runs.js'
import { ask, createTestService } from '../../support/service.js'
import { until } from '../../support/until.js'

const LIMIT = { crashes: 3, failure: { code: 'renderer_crashed', message: 'gave up' } }

async function openNodes() {
  const url = await temporaryDatabase()
  const [one, other] = [await openTestStore(url), await openTestStore(url)]
  const accountId = await one.ensureAccount({ name: 'acme', credits: 10, nowMs: 0 })
  const add = (id: string, store = one) => store.addRun(newRun({ id, accountId }), () => {})
  const workerOf = async (id: string) => (await one.listWorkers()).find((worker) => worker.id === id)
  return { url, one, other, accountId, add, workerOf }
}

describePostgres('on PostgreSQL', () => {
  test('two nodes claim each run once at the same time, with the accounts in turn', async () => {
    const { one, other, add } = await openNodes()
    const second = await one.ensureAccount({ name: 'second', credits: 0, nowMs: 0 })
    const ids = Array.from({ length: 40 }, (_, n) => `run_${n}`)
    for (const id of ids.slice(0, 20)) await add(id)
    for (const id of ids.slice(20)) await one.addRun(newRun({ id, accountId: second }), () => {})
    await one.renewLease('a')
    await other.renewLease('b')
    const claim = (n: number) => (n % 2 === 0 ? claimRun(one, 'a') : claimRun(other, 'b'))
    const first = await Promise.all(Array.from({ length: 20 }, (_, n) => claim(n)))
    expect(first.filter((run) => run?.accountId === second)).toHaveLength(10)
    const rest = await Promise.all(Array.from({ length: 30 }, (_, n) => claim(n)))
    expect([...first, ...rest].flatMap((run) => run?.id ?? []).sort()).toEqual(ids.sort())
  })

  test('a node is notified of runs that others queue, also after its connection was lost', async () => {
    const { url, one, other, add } = await openNodes()
    let heard = 0
    const stop = other.onQueued(() => {
      heard++
    })
    // It listens now, and may have missed something before.
    await expect.poll(() => heard).toBe(1)
    await add('one')
    await expect.poll(() => heard).toBe(2)
    await (await sharedPostgres()).killBackends(url)
    await expect.poll(() => heard).toBe(3)
    await add('two')
    await expect.poll(() => heard).toBe(4)
    await add('own', other)
    await one.renewLease('me')
    await claimRun(one, 'me')
    await one.releaseWorker('me')
    await expect.poll(() => heard).toBe(5)
    stop()
  })

  test('a worker is connected while its node is, and loses its lock with its connection', async () => {
    const { url, other, add, one, workerOf } = await openNodes()
    const proxy = await createPostgresProxy(url)
    const third = await openTestStore(proxy.url)
    await third.renewLease('third')
    await other.renewLease('other')
    expect(await workerOf('third')).toMatchObject({ hasEnded: false, isDisconnected: false })
    await add('one')
    expect(await claimRun(third, 'third')).toMatchObject({ id: 'one' })
    await proxy.close()
    await expect.poll(() => workerOf('third')).toMatchObject({ isDisconnected: true })
    expect(await workerOf('other')).toMatchObject({ isDisconnected: false })
    const dead = await workerOf('third')
    expect(dead && (await one.reapWorker(dead, LIMIT, 7))).toEqual({ runs: 0, refunded: 0 })
    expect(await claimRun(other, 'other', { nowMs: 8 })).toMatchObject({ id: 'one' })
  })

  test('a worker takes its lock again automatically, and a stale reap is refused', async () => {
    const { url, one, other, workerOf } = await openNodes()
    await other.renewLease('other')
    const seen = await workerOf('other')
    await (await sharedPostgres()).killBackends(url)
    // The lock that the dying backend still holds is not the one that is taken again: that renews the lease.
    await expect.poll(async () => (await workerOf('other'))?.heartbeatAtMs).not.toBe(seen?.heartbeatAtMs)
    await expect.poll(() => workerOf('other')).toMatchObject({ isDisconnected: false })
    expect(seen && (await one.reapWorker(seen, LIMIT, 7))).toBeUndefined()
    expect(await other.extendLease('other')).toBe(true)
  })

  test('a worker takes its lock from its own hanging connection', async () => {
    const { url, one, workerOf } = await openNodes()
    const proxy = await createPostgresProxy(url)
    onTestFinished(() => proxy.close())
    const third = await openTestStore(proxy.url)
    await third.renewLease('third')
    proxy.freeze()
    expect(await third.extendLease('third')).toBe(true)
    const locks = await (await sharedPostgres()).query(
      "SELECT count(*)::integer AS count FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
      url,
    )
    expect(locks).toEqual([{ count: 1 }])
    expect(await workerOf('third')).toMatchObject({ isDisconnected: false })
    await one.checkWritable()
  })

  test('concurrent claims and reaps leave no run without a worker', async () => {
    const { one, other, add } = await openNodes()
    await one.renewLease('one')
    const ids = Array.from({ length: 30 }, (_, n) => `run_${n}`)
    for (const id of ids) await add(id)
    for (let round = 0; round < 10; round++) {
      const name = `worker_${round}`
      await other.renewLease(name)
      const worker = (await one.listWorkers()).find(({ id }) => id === name)
      await Promise.all([
        ...Array.from({ length: 3 }, () => claimRun(other, name)),
        worker && one.reapWorker(worker, { ...LIMIT, crashes: 99 }, 7),
        ...Array.from({ length: 3 }, () => claimRun(other, name)),
      ])
      await other.releaseWorker(name)
    }
    expect((await one.queueLengths()).image).toBe(30)
  })

  test('a node is ready only while its permanent connection works too', async () => {
    const { url } = await openNodes()
    const proxy = await createPostgresProxy(url)
    const third = await openTestStore(proxy.url, systemClock)
    await third.renewLease('third')
    await third.checkWritable()
    await proxy.close()
    await expect(third.checkWritable()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    const isReady = createReadiness({
      checkDatabase: third.checkWritable,
      clock: systemClock,
      isDiskFull: () => false,
    })
    expect(await isReady()).toBe(false)
  })

  test('a node is not ready on a database that has become read-only', async () => {
    const url = await temporaryDatabase()
    const one = await openTestStore(url, systemClock)
    const server = await sharedPostgres()
    await one.checkWritable()
    await server.query(
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`,
    )
    await server.killBackends(url)
    await expect(one.checkWritable()).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
  })

  test('the lease of an ended process is reaped 3 s after its connection was lost', async () => {
    const { url, one, add, workerOf } = await openNodes()
    const proxy = await createPostgresProxy(url)
    const third = await openTestStore(proxy.url)
    await third.renewLease('third')
    await add('one')
    await claimRun(third, 'third')
    const clock = createManualClock()
    const lease = createWorkerLease({ store: one, clock, onError: () => {} })
    onTestFinished(() => lease.release())
    await lease.acquire()
    await proxy.close()
    await expect.poll(() => workerOf('third')).toMatchObject({ isDisconnected: true })
    expect(await lease.reapExpiredWorkers()).toEqual([])
    await clock.advance(2_999)
    expect(await lease.reapExpiredWorkers()).toEqual([])
    await clock.advance(1)
    expect(await lease.reapExpiredWorkers()).toEqual(['third'])
    expect(await claimRun(one, lease.id, { nowMs: 8 })).toMatchObject({ id: 'one' })
  })

  test.skipIf(!canRestartPostgres)(
    'the service closes within 5 s while the database is unavailable',
    async () => {
      const server = await startPostgres()
      onTestFinished(() => server.stop())
      const engine = createCommandedEngine({ stuck: true })
      const service = await createTestService({ databaseUrl: await server.createDatabase(), engine })
      const { clock } = service
      await ask(service, 'POST', RUNS_PATH, { model: LOCAL_MODELS.image, input: { prompt: 'a fox' } })
      await until('the render', async () => {
        await clock.advance(1_000)
        return engine.jobs.length === 1
      })
      await server.halt()
      const startedMs = clock.monotonic()
      await clock.runUntil(service.service.close())
      expect(clock.monotonic() - startedMs).toBeLessThanOrEqual(5_000)
    },
  )
})
