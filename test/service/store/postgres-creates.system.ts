/** Changes of one account at the same time: creates, and a session with a new password. */
import { expect, test } from 'vitest'
import type { NewRun } from '../../../src/service/store/run.js'
import { newRun, until } from '../../support/index.js'
import { describePostgres, openTestStore, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

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
