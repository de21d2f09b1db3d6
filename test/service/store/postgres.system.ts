import { expect, test } from 'vitest'
import { databaseContract } from '../../contract/databases.js'
import { fillStore } from '../../contract/filled-store.js'
import { until } from '../../support/index.js'
import { describePostgres, openTestStore, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

describePostgres('on PostgreSQL', () => {
  databaseContract(async () => {
    const url = await temporaryDatabase()
    const store = await openTestStore(url)
    const server = await sharedPostgres()
    return { store, run: async (sql) => void (await server.query(`SET search_path = rushes; ${sql}`, url)) }
  })

  test('a new password and a session in use wait for each other without a deadlock', async () => {
    const url = await temporaryDatabase()
    const { store, accountId } = await fillStore(() => openTestStore(url))
    const userId = (await store.addUser({ email: 'ann@example.com', accountId, nowMs: 1 })) ?? 0
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
