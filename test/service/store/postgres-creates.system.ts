/** Creates of one account that arrive together, and share a transaction. */
import { expect, onTestFinished, test } from 'vitest'
import { type NewRun, type Store, withBudgetCheck } from '../../../src/service/store/contract.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { describePostgres, STILL_CLOCK, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'
import { createPostgresProxy } from '../../support/postgres-proxy.js'
import { claimRun } from '../../support/runs.js'

async function opened(url: string): Promise<Store> {
  const store = await openPostgresStore(url, { clock: STILL_CLOCK })
  onTestFinished(() => store.close())
  return store
}

async function openWithKeys(credits: number) {
  const url = await temporaryDatabase()
  const store = await opened(url)
  const accountId = await store.ensureAccount({ name: 'acme', credits, nowMs: 0 })
  const addKey = (hash: string, terms = {}) =>
    store.addKey({ accountId, hash, prefix: 'rk_test', name: hash, nowMs: 0, ...terms })
  const keyId = await addKey('h')
  const runOf = (id: string, changes: Partial<NewRun> = {}): NewRun => ({
    ...{ id, accountId, keyId, model: 'm', kind: 'image', input: {}, price: 1, createdAtMs: 1 },
    ...changes,
  })
  /** In how many transactions the runs were added. */
  const transactions = async () => {
    const server = await sharedPostgres()
    const [row] = await server.query('SELECT count(DISTINCT xmin::text)::integer AS n FROM rushes.runs', url)
    return row?.n
  }
  return { url, store, accountId, keyId, addKey, runOf, transactions }
}

const outcomes = async (creates: readonly Promise<unknown>[]): Promise<readonly unknown[]> =>
  (await Promise.allSettled(creates)).map((each) => (each.status === 'fulfilled' ? 'made' : each.reason.code))

describePostgres('on PostgreSQL', () => {
  test('creates that wait together are one transaction, in their order, with their inputs', async () => {
    const { store, accountId, runOf, transactions } = await openWithKeys(1_000)
    const inputs = [
      { prompt: 'a\u0000b "quoted" \\ {}', '\u0000': '\u0000' },
      { prompt: '\ud800 and \udc00', big: 1e308, list: [[null], {}] },
      { image_urls: [{ sha256: 'abc', type: 'image/png' }, { sha256: 'def' }, 'https://example.com/a.png'] },
    ]
    const ids = Array.from({ length: 30 }, (_, n) => `run_${n}`)
    await Promise.all(
      ids.map((id, n) =>
        withBudgetCheck(store).addRun(
          runOf(id, { input: inputs[n % 3] ?? {}, kind: n % 2 === 0 ? 'image' : 'video' }),
        ),
      ),
    )
    expect(await transactions()).toBe(2)
    for (const [n, id] of ids.entries())
      expect((await store.findRun(id, accountId))?.input).toEqual(inputs[n % 3])
    expect(await store.queueLengths()).toEqual({ image: 15, video: 15 })
    await store.renewLease('me')
    for (const id of ids) expect((await claimRun(store, 'me'))?.id).toBe(id)
    expect((await store.listEntries('acme', -1)).map((entry) => entry.runId).reverse()).toEqual([
      undefined,
      ...ids,
    ])
    expect((await store.verify()).problems).toEqual([])
  })

  test('30 large creates at once are all made, in groups of a bounded size, and hold up no other account', async () => {
    const { url, store, accountId, runOf, transactions } = await openWithKeys(1_000)
    const otherId = await store.ensureAccount({ name: 'other', credits: 10, nowMs: 0 })
    const check = () => {}
    const input = { prompt: '\u0001'.repeat(100_000), notes: 'x'.repeat(175_000) }
    // Until the others are served, none of the creates can end.
    const commit = await (await sharedPostgres()).hold(
      `SELECT 1 FROM rushes.accounts WHERE id = ${accountId} FOR UPDATE`,
      url,
    )
    const creates = Array.from({ length: 30 }, (_, n) => store.addRun(runOf(`run_${n}`, { input }), check))
    await store.addRun(runOf('theirs', { accountId: otherId, keyId: undefined }), check)
    expect(await store.findRun('theirs', otherId)).toMatchObject({ status: 'queued' })
    await commit()
    await Promise.all(creates)
    // 5 of 775 KB are within 4 MiB; the first is made alone, and so is that of the other account.
    expect(await transactions()).toBe(8)
    expect((await store.findRun('run_29', accountId))?.input).toEqual(input)
  })

  test('each is checked with what those before it leave, of its key and of the account', async () => {
    const { store, addKey, runOf } = await openWithKeys(10)
    const limited = await addKey('limited', { spendLimit: 3 })
    const counted = await addKey('counted', { quota: 2 })
    const add = (id: string, changes: Partial<NewRun>) => withBudgetCheck(store).addRun(runOf(id, changes))
    expect(
      await outcomes([
        add('first', { price: 1 }),
        add('limited 1', { keyId: limited, price: 2 }),
        add('limited 2', { keyId: limited, price: 2 }),
        add('limited 3', { keyId: limited, price: 1 }),
        add('counted 1', { keyId: counted, price: 0 }),
        add('counted 2', { keyId: counted, price: 1 }),
        add('counted 3', { keyId: counted, price: 0 }),
        add('too dear', { price: 6 }),
        add('last', { price: 5 }),
        add('nothing left', { price: 1 }),
        add('free', { price: 0, keyId: undefined }),
      ]),
    ).toEqual([
      ...['made', 'made', 'api_key_spend_limit_exceeded', 'made', 'made', 'made', 'USAGE_EXCEEDED'],
      ...['insufficient_balance', 'made', 'insufficient_balance', 'made'],
    ])
    expect(await store.listAccounts()).toMatchObject([{ balance: 0, runs: 7 }])
    expect((await store.verify()).problems).toEqual([])
  })

  test('one that fails does not fail those beside it', async () => {
    const { store, runOf } = await openWithKeys(10)
    const add = (id: string, changes: Partial<NewRun> = {}) =>
      withBudgetCheck(store).addRun(runOf(id, changes))
    await add('taken')
    expect(
      await outcomes([
        add('first'),
        add('a'),
        add('taken'),
        add('b', { keyId: 999 }),
        add('c'),
        add('c'),
        add('d', { model: 'a\u0000' }),
        add('e'),
      ]),
    ).toEqual(['made', 'made', '23505', undefined, 'made', '23505', '22021', 'made'])
    expect(await store.listAccounts()).toMatchObject([{ balance: 5, runs: 5 }])
    expect((await store.verify()).problems).toEqual([])
  })

  test.each([true, false])(
    'all are made once when the connection is lost with their commit (it reaches the server: %s)',
    async (reachesServer) => {
      const { url, store, runOf, transactions } = await openWithKeys(8)
      const proxy = await createPostgresProxy(url)
      onTestFinished(() => proxy.close())
      const behind = withBudgetCheck(await opened(proxy.url))
      const creates = Array.from({ length: 10 }, (_, n) => behind.addRun(runOf(`run_${n}`)))
      const all = outcomes(creates)
      await creates[0]
      // The others are one transaction, with the last credits.
      proxy.breakAt('COMMIT', reachesServer)
      expect((await all).filter((outcome) => outcome === 'made')).toHaveLength(8)
      expect(proxy.broken).toBe(1)
      if (reachesServer) expect(await transactions()).toBe(2)
      expect(await store.listAccounts()).toMatchObject([{ balance: 0, runs: 8 }])
      expect((await store.verify()).problems).toEqual([])
    },
  )

  test('an account whose row is locked keeps no other waiting', async () => {
    const { url, store, runOf } = await openWithKeys(10)
    const other = await store.ensureAccount({ name: 'other', credits: 0, nowMs: 0 })
    const server = await sharedPostgres()
    const commit = await server.hold('SELECT 1 FROM rushes.accounts WHERE id = 1 FOR UPDATE', url)
    const waiting = Array.from({ length: 5 }, (_, n) => store.addRun(runOf(`run_${n}`), () => {}))
    await store.addRun(runOf('free', { accountId: other, keyId: undefined, price: 0 }), () => {})
    await commit()
    await Promise.all(waiting)
    expect((await store.verify()).problems).toEqual([])
  })
})
