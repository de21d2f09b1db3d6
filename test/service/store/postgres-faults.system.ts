/** Connections that are lost, in the middle of each operation, and servers that are restarted under load. */
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import type { Store } from '../../../src/service/store/index.js'
import { createDatabase } from '../../../src/service/store/postgres/database.js'
import type { PostgresOptions } from '../../../src/service/store/postgres/index.js'
import { DatabaseUnavailable } from '../../../src/service/store/sql.js'
import { fillStore } from '../../contract/filled-store.js'
import { createConsoleService, signInByLink, submitRun, wordsOf } from '../../support/console.js'
import { createManualClock } from '../../support/index.js'
import {
  canRestartPostgres,
  describePostgres,
  hasPostgres,
  openTestStore,
  sharedPostgres,
  startPostgres,
  temporaryDatabase,
} from '../../support/postgres.js'
import { createPostgresProxy } from '../../support/postgres-proxy.js'
import { claimRun, held, newRun, storedOutput } from '../../support/runs.js'

const output = (token: string) => storedOutput({ token })

async function openFilled(url: string, credits: number, clock?: PostgresOptions['clock']) {
  const { store, accountId, keyId, statusOf, runOf } = await fillStore(
    () => openTestStore(url, clock),
    credits,
  )
  const add = (id: string, by: Pick<Store, 'addRun'> = store) =>
    by.addRun(newRun({ id, accountId, keyId, price: 1 }))
  return { store, accountId, statusOf, runOf, add }
}

/** A store behind a proxy, and one beside it that sees what became of things. */
async function openBehindProxy(credits = 5) {
  const url = await temporaryDatabase()
  const beside = await openFilled(url, credits)
  const proxy = await createPostgresProxy(url)
  onTestFinished(() => proxy.close())
  const behind = await openTestStore(proxy.url, systemClock)
  return { ...beside, url, behind, beside: beside.store, proxy }
}

describePostgres('on PostgreSQL', () => {
  test('an error contains no values of rows', async () => {
    const { url, store } = await openBehindProxy()
    await store.addUser({ email: 'ann@example.com', accountId: 1, nowMs: 1 })
    const database = createDatabase({ url, maxConnections: 1 })
    onTestFinished(() => database.close())
    const insert = (account: number | null) =>
      `INSERT INTO users (email, account_id, created_at) VALUES ('ann@example.com', ${account}, 1)`
    for (const [statement, code] of [
      [insert(1), '23505'],
      [insert(null), '23502'],
      [`SELECT json_populate_record(null::users, '{"email":"ann@example.com", x}')`, '22P02'],
    ] as const)
      for (const attempt of [
        () => database.run(statement),
        () => database.transaction((tx) => tx.run(statement)),
      ]) {
        const error = await attempt().catch((thrown: unknown) => thrown)
        expect(error).toMatchObject({ code })
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('ann@')
      }
  })

  test.each([
    ['the answer to the commit', 'COMMIT\0', true],
    ['the commit', 'COMMIT\0', false],
    ['the first statement', 'BEGIN', false],
  ])('a create takes effect once when %s is lost', async (_name, at, reachesServer) => {
    // With the last credit: what was committed must not be refused for want of it.
    const { behind, beside, proxy, add, statusOf } = await openBehindProxy(1)
    proxy.breakAt(at, reachesServer)
    await add('one', behind)
    expect(proxy.broken).toBe(1)
    expect(await statusOf('one')).toBe('queued')
    expect(await beside.listAccounts()).toMatchObject([{ balance: 0, runs: 1 }])
    await expect(add('two', behind)).rejects.toMatchObject({
      code: 'insufficient_balance',
    })
    expect((await beside.verify()).problems).toEqual([])
  })

  test.each([true, false])('a result is written once (it reaches the server: %s)', async (reachesServer) => {
    const { behind, proxy, store, runOf, add } = await openBehindProxy()
    await add('one')
    await claimRun(store, 'me')
    const one = held('one', 'me', 6)
    proxy.breakAt('COMMIT\0', reachesServer)
    expect(await behind.finishRun(one, [output('t')])).toBe(true)
    expect(await behind.finishRun(one, [output('u')])).toBe(false)
    expect((await runOf('one'))?.outputs).toEqual([output('t')])
  })

  test('a result whose write timed out after 5 s is kept if it had been committed', async () => {
    const { proxy, store, add, statusOf } = await openBehindProxy()
    // The 5 s pass when the answer is lost.
    const clock = { ...systemClock, monotonic: () => proxy.broken * 5_000 }
    const behind = await openTestStore(proxy.url, clock)
    await add('one')
    await claimRun(store, 'me')
    const finish = () => behind.finishRun(held('one', 'me', 6), [output('t')])
    proxy.breakAt('COMMIT\0', true)
    await expect(finish()).rejects.toBeInstanceOf(DatabaseUnavailable)
    expect(await statusOf('one')).toBe('succeeded')
    expect([await finish(), await finish()]).toEqual([true, true])
  })

  test('accounts and workers survive a lost response, without duplicate keys or credits', async () => {
    const { behind, beside, proxy, accountId } = await openBehindProxy()
    const key = { accountId, hash: 'other', prefix: 'rk_other', name: 'other', nowMs: 0 }
    proxy.breakAt('COMMIT\0', true)
    const lost = { code: 'DATABASE_UNAVAILABLE', message: expect.stringContaining('may have been made') }
    await expect(behind.addKey(key)).rejects.toMatchObject(lost)
    expect(await beside.findKey('other')).toMatchObject({ accountId })
    proxy.breakAt('COMMIT\0', true)
    const added = await behind.ensureAccount({ name: 'more', credits: 7, nowMs: 0 })
    expect((await beside.listAccounts()).find(({ id }) => id === added)).toMatchObject({ balance: 7 })
    proxy.breakAt('COMMIT\0', true)
    await expect(behind.addCredits({ account: 'more', amount: 5, nowMs: 1 }, () => {})).rejects.toMatchObject(
      lost,
    )
    expect((await beside.listAccounts()).find(({ id }) => id === added)).toMatchObject({ balance: 12 })
    expect((await beside.verify()).problems).toEqual([])
  })

  const OPERATIONS: readonly [string, (store: Store, id: string) => Promise<unknown>][] = [
    ['a status', (store, id) => store.findRun(id, 1)],
    ['a claim', (store) => claimRun(store, 'me')],
    ['a result', (store, id) => store.finishRun(held(id, 'me', 6), [output(id)])],
    ['the ledger', (store) => store.verify()],
  ]
  test.each(OPERATIONS)('%s survives connections that the server ends', async (_name, operation) => {
    const url = await temporaryDatabase()
    const { store, add } = await openFilled(url, 1_000)
    const server = await sharedPostgres()
    for (let n = 0; n < 20; n++) await add(`run_${n}`)
    for (let n = 0; n < 10; n++) await claimRun(store, 'me')
    const killing = (async () => {
      for (let times = 0; times < 5; times++) await server.killBackends(url)
    })()
    for (let n = 0; n < 20; n++) await operation(store, `run_${n}`)
    await killing
    expect((await store.verify()).problems).toEqual([])
  })

  test.skipIf(!canRestartPostgres)(
    'an unavailable server is one error after 5 s, or after 1.5 s while closing',
    async () => {
      const server = await startPostgres()
      onTestFinished(() => server.stop())
      const clock = createManualClock()
      const url = await server.createDatabase()
      const { store, add, statusOf } = await openFilled(url, 10, clock)
      const closing = await openTestStore(url, clock)
      await server.halt()
      const failureOf = (operation: () => Promise<unknown>): Promise<unknown> =>
        clock.runUntil(
          operation().then(
            () => undefined,
            (error: unknown) => error,
          ),
        )
      for (const operation of [
        () => add('one'),
        () => statusOf('one'),
        () => store.renewRuns('me', []),
        () => claimRun(store, 'me'),
      ]) {
        const startedMs = clock.monotonic()
        expect(await failureOf(operation)).toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
        expect(clock.monotonic() - startedMs).toBeGreaterThan(4_000)
        expect(clock.monotonic() - startedMs).toBeLessThan(5_000)
      }
      expect(await failureOf(() => store.checkWritable())).toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
      const startedMs = clock.monotonic()
      const last = closing.renewRuns('me', [])
      closing.stopWaiting()
      expect(await failureOf(() => last)).toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
      expect(clock.monotonic() - startedMs).toBeLessThan(1_500)
      await server.resume()
      await add('one')
      expect(await statusOf('one')).toBe('queued')
      await store.checkWritable()
    },
  )

  test('a connection that hangs is abandoned', async () => {
    const { behind, proxy, add, accountId } = await openBehindProxy()
    await add('one')
    await behind.findRun('one', accountId)
    proxy.freeze()
    expect(
      await behind.findRun('one', accountId).catch(() => behind.findRun('one', accountId)),
    ).toMatchObject({
      id: 'one',
    })
    await behind.checkWritable()
  })
})

test.skipIf(!hasPostgres)(
  'an unconfirmed create is a 503 that says so, and is charged once when it is sent again',
  async () => {
    const proxy = await createPostgresProxy(await temporaryDatabase())
    onTestFinished(() => proxy.close())
    const service = await createConsoleService({ databaseUrl: proxy.url })
    const browser = await signInByLink(service)
    const create = () => submitRun(browser, { form_key: 'draft-1' })
    proxy.stayAway()
    proxy.breakAt('COMMIT\0', true, 'INSERT INTO runs')
    const lost = await service.clock.runUntil(create())
    expect([lost.status, wordsOf(lost)]).toEqual([
      503,
      expect.stringContaining('A change may have been made.'),
    ])
    proxy.comeBack()
    const again = await service.clock.runUntil(create())
    expect(again.header('location')).toMatch(/^\/runs\/run_/)
    const list = await browser.get('/runs')
    expect(list.body.match(/<tr id="run_/g)).toHaveLength(1)
    expect((await browser.get('/credits')).body).toContain('9,999 <small>credits')
  },
)
