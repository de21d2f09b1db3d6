/** Changes of one account at the same time: creates, and a session with a new password. */
import { expect, onTestFinished, test } from 'vitest'
import { withBudgetCheck } from '../../../src/service/store/calls.js'
import type { NewRun } from '../../../src/service/store/contract.js'
import {
  describePostgres,
  openTestStore,
  STILL_CLOCK,
  sharedPostgres,
  temporaryDatabase,
} from '../../support/postgres.js'
import { createPostgresProxy } from '../../support/postgres-proxy.js'
import { newRun } from '../../support/runs.js'
import { until } from '../../support/until.js'

async function openWithKey(credits: number) {
  const url = await temporaryDatabase()
  const store = await openTestStore(url)
  const accountId = await store.ensureAccount({ name: 'acme', credits, nowMs: 0 })
  const keyId = await store.addKey({ accountId, hash: 'h', prefix: 'rk_test', name: 'h', nowMs: 0 })
  const runOf = (id: string, changes: Partial<NewRun> = {}): NewRun =>
    newRun({ id, accountId, keyId, price: 1, ...changes })
  return { url, store, runOf }
}

describePostgres('on PostgreSQL', () => {
  test.each([true, false])(
    'charges each create once if its commit is lost (it reaches the server: %s)',
    async (reachesServer) => {
      const { url, store, runOf } = await openWithKey(8)
      const proxy = await createPostgresProxy(url)
      onTestFinished(() => proxy.close())
      const behind = withBudgetCheck(await openTestStore(proxy.url))
      const ids = Array.from({ length: 10 }, (_, n) => `run_${n}`)
      const results = Promise.allSettled(ids.map((id) => behind.addRun(runOf(id))))
      proxy.breakAt('COMMIT\0', reachesServer)
      expect((await results).filter(({ status }) => status === 'fulfilled')).toHaveLength(8)
      expect(proxy.broken).toBe(1)
      expect(await store.listAccounts()).toMatchObject([{ balance: 0, runs: 8 }])
      expect((await store.verify()).problems).toEqual([])
    },
  )

  test('many creates of a locked account take no connections from other accounts', async () => {
    const { url, store, runOf } = await openWithKey(100)
    const other = await store.ensureAccount({ name: 'other', credits: 0, nowMs: 0 })
    const server = await sharedPostgres()
    const commit = await server.hold('SELECT 1 FROM rushes.accounts WHERE id = 1 FOR UPDATE', url)
    let added = 0
    const waiting = Array.from({ length: 30 }, async (_, n) => {
      await store.addRun(runOf(`run_${n}`), () => {})
      added++
    })
    await store.addRun(runOf('free', { accountId: other, keyId: undefined, price: 0 }), () => {})
    expect(await store.findRun('free', other)).toMatchObject({ status: 'queued' })
    expect(added).toBe(0)
    await commit()
    await Promise.all(waiting)
    expect(await store.listAccounts()).toMatchObject([{ balance: 70, runs: 30 }, { runs: 1 }])
    expect((await store.verify()).problems).toEqual([])
  })

  test('a create that waits for others of its account fails with them if the database hangs', async () => {
    const { url, runOf } = await openWithKey(100)
    const clock = { ...STILL_CLOCK, nowMs: 0, monotonic: () => clock.nowMs }
    const store = await openTestStore(url, clock)
    const server = await sharedPostgres()
    const commit = await server.hold('SELECT 1 FROM rushes.accounts WHERE id = 1 FOR UPDATE', url)
    const creates = Array.from({ length: 5 }, (_, n) => store.addRun(runOf(`run_${n}`), () => {}))
    clock.nowMs = 5_000
    await commit()
    const results = await Promise.allSettled(creates)
    expect(results.map((each) => (each.status === 'fulfilled' ? 'added' : each.reason.code))).toEqual([
      ...['added', 'added'],
      ...Array(3).fill('DATABASE_UNAVAILABLE'),
    ])
    expect(await store.listAccounts()).toMatchObject([{ balance: 98, runs: 2 }])
  })

  test('a new password and a session in use wait for each other without a deadlock', async () => {
    const { url, store } = await openWithKey(0)
    const userId = (await store.addUser({ email: 'ann@example.com', accountId: 1, nowMs: 1 })) ?? 0
    const from = { fromLink: false, address: undefined, userAgent: undefined }
    await store.addSession({ hash: 's', userId, ...from, nowMs: 1, expiresAtMs: 9 })
    const server = await sharedPostgres()
    const waiting = (count: number) =>
      until('the locks', async () => {
        const [row] = await server.query('SELECT count(*) AS n FROM pg_locks WHERE NOT granted', url)
        return Number(row?.n) === count
      })
    const commit = await server.hold('SELECT 1 FROM rushes.tokens FOR UPDATE', url)
    const extended = store.extendSession('s', { usedAtMs: 2, expiresAtMs: 10 })
    await waiting(1)
    const changed = store.setPassword(userId, 'scrypt', 's')
    await waiting(2)
    await commit()
    await Promise.all([extended, changed])
    const [row] = await server.query(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      url,
    )
    expect(row).toEqual({ deadlocks: '0' })
  })
})
