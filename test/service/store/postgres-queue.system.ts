/** The queue under concurrent nodes: claims, ends, crashes and lost workers at once. */
import { expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../../src/service/store/index.js'
import type { NewRun } from '../../../src/service/store/run.js'
import { crashLimit, FAILURE } from '../../contract/filled-store.js'
import {
  canRestartPostgres,
  describePostgres,
  openTestStore,
  sharedPostgres,
  startPostgres,
  temporaryDatabase,
} from '../../support/postgres.js'
import { claimRun, held, newRun } from '../../support/runs.js'

const ACCOUNTS = 4

/** Accounts 1 to 4, each with the key of its number and these credits. */
async function fill<Filled extends Store>(store: Filled, credits: number): Promise<Filled> {
  for (let n = 1; n <= ACCOUNTS; n++) {
    expect(await store.ensureAccount({ name: `account ${n}`, credits, nowMs: 0 })).toBe(n)
    expect(await store.addKey({ accountId: n, hash: `h${n}`, prefix: 'rk_test', name: 'k', nowMs: 0 })).toBe(
      n,
    )
  }
  return store
}

const runOf = (id: string, account: number): NewRun =>
  newRun({ id, accountId: account, keyId: account, model: 'm', price: 1 })

describePostgres('on PostgreSQL', () => {
  /** Creates, claims, ends, crashes and lost workers on two nodes at once, until there are enough runs. What was accepted. */
  async function flood(
    nodes: readonly Store[],
    isEnough: (accepted: readonly string[]) => boolean,
  ): Promise<readonly string[]> {
    const accepted: string[] = []
    const isOver = () => isEnough(accepted)
    let created = 0
    const nodeOf = (n: number) => nodes[n % nodes.length] as Store
    const writers = Array.from({ length: 16 }, async (_, n) => {
      while (!isOver()) {
        const id = `run_${++created}`
        await nodeOf(n).addRun(runOf(id, 1 + (created % ACCOUNTS)))
        accepted.push(id)
      }
    })
    const claimers = Array.from({ length: 4 }, async (_, n) => {
      const node = nodeOf(n)
      for (let round = 0; !isOver(); round++) {
        const owner = `worker_${n}_${round}`
        for (let claims = 0; claims < 12; claims++) {
          const run = await claimRun(node, owner)
          if (run === undefined) continue
          const mine = held(run.id, owner, 6)
          if (claims % 4 === 0) await node.finishRun(mine, [])
          if (claims % 4 === 1) await node.failRun(mine, FAILURE)
          if (claims % 4 === 2) await node.recordCrash(mine, crashLimit(99))
        }
        await node.releaseRuns(owner)
      }
    })
    await Promise.all([...writers, ...claimers])
    return accepted
  }

  /** Every run that was accepted and has not ended is still found by a worker. */
  async function expectNothingLost(store: Store, accepted: readonly string[]): Promise<void> {
    expect((await store.verify()).problems).toEqual([])
    const queued = (await store.queueLengths()).image
    // Few at once, as workers do: thousands would wait for a connection for longer than the store allows.
    const claimed: string[] = []
    const claimer = async () => {
      for (;;) {
        const run = await claimRun(store, 'last', { nowMs: 8 })
        if (run === undefined) return
        claimed.push(run.id)
      }
    }
    await Promise.all([claimer(), claimer(), claimer(), claimer()])
    expect([claimed.length, new Set(claimed).size]).toEqual([queued, queued])
    const states: (string | undefined)[] = []
    for (const id of accepted) {
      const runs = await Promise.all([1, 2, 3, 4].map((account) => store.findRun(id, account)))
      states.push(runs.find(Boolean)?.status)
    }
    expect(states.filter((state) => state === 'processing')).toHaveLength(queued)
    expect(new Set(states)).not.toContain('queued')
    expect(new Set(states)).not.toContain(undefined)
  }

  test('16 writers and 4 claimers on two nodes cause no deadlock and lose no run', async () => {
    const url = await temporaryDatabase()
    const nodes = [await fill(await openTestStore(url), 1_000_000), await openTestStore(url)]
    const accepted = await flood(nodes, (runs) => runs.length > 1_000)
    const deadlocks = await (await sharedPostgres()).query(
      `SELECT deadlocks::integer FROM pg_stat_database WHERE datname = '${new URL(url).pathname.slice(1)}'`,
    )
    expect(deadlocks).toEqual([{ deadlocks: 0 }])
    await expectNothingLost(nodes[0] as Store, accepted)
  })

  test.skipIf(!canRestartPostgres)('kill -9 of a backend loses no run and no turn', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const url = await server.createDatabase()
    const nodes = [await fill(await openTestStore(url), 1_000_000), await openTestStore(url)]
    let isOver = false
    const flooding = flood(nodes, () => isOver)
    // Before the nodes are closed, also when the test fails.
    onTestFinished(async () => {
      isOver = true
      await flooding.catch(() => {})
    })
    const countRuns = async () =>
      Number((await server.query('SELECT count(*) FROM rushes.runs', url))[0]?.count)
    for (let kills = 0; kills < 3; kills++) {
      const before = await countRuns()
      await expect.poll(countRuns).toBeGreaterThan(before + 50)
      await expect.poll(() => server.crash()).toBe(true)
    }
    isOver = true
    const accepted = await flooding
    await expectNothingLost(nodes[0] as Store, accepted)
  })

  test('a create of an account does not wait for a claim of it that is not committed, nor a claim for a create', async () => {
    const url = await temporaryDatabase()
    const store = await fill(await openTestStore(url), 10)
    for (const id of ['a', 'b', 'c']) await store.addRun(runOf(id, 1))
    const server = await sharedPostgres()
    const held = async (sql: string, work: () => Promise<unknown>) => {
      const commit = await server.hold(sql, url)
      await work()
      await commit()
    }
    await held(
      `UPDATE rushes.runs SET status = 'processing', owner = 'other', lease_until = 9e15 WHERE id = 'a'`,
      () => store.addRun(runOf('d', 1)),
    )
    await held(
      `INSERT INTO rushes.runs (id, account_id, model, kind, input, price, status, turn, created_at)
       VALUES ('e', 1, 'm', 'image', '{}', 0, 'queued', 9, 1)`,
      async () => {
        for (const id of ['b', 'c', 'd']) expect(await claimRun(store, 'me')).toMatchObject({ id })
        expect(await claimRun(store, 'me')).toBeUndefined()
      },
    )
    expect(await claimRun(store, 'me')).toMatchObject({ id: 'e' })
  })
})
