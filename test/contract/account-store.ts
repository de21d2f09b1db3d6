/** What every implementation of the store keeps to about accounts, keys and credits. */
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/service/store/index.js'
import type { NewKey } from '../../src/service/store/keys.js'
import type { CrashLimit, NewRun } from '../../src/service/store/run.js'
import { claimRun, held } from '../support/index.js'
import { newRun as createNewRun } from '../support/runs.js'

const GIVEN_UP: CrashLimit = { crashes: 1, failure: { code: 'renderer_crashed', message: 'gave up' } }
const USABLE = { disabled: false, expiresAtMs: undefined, banned: false }
const FAILURE = { code: 'render_failed', message: 'no' }

/** `open` gives an empty store; it is called within each test. */
export function accountContract(open: () => Store | Promise<Store>): void {
  async function createStore(credits = 100) {
    const store = await open()
    const accountId = await store.ensureAccount({ name: 'acme', credits, nowMs: 0 })
    const addKey = (more: Partial<NewKey> = {}) =>
      store.addKey({
        accountId,
        hash: `hash ${Math.random()}`,
        prefix: 'rk_ci',
        name: 'ci',
        nowMs: 0,
        ...more,
      })
    const keyId = await addKey()
    let created = 0
    /** A run of the account, without a key unless said otherwise. */
    const newRun = (id: string, more: Partial<NewRun> = {}): NewRun =>
      createNewRun({ id, accountId, ...more })
    const addRun = async (price: number, may: Parameters<Store['addRun']>[1] = () => {}, key = keyId) => {
      const id = `run_${++created}`
      await store.addRun(newRun(id, { keyId: key, price, createdAtMs: created }), may)
      return id
    }
    const claim = async () => (await claimRun(store, 'me'))?.id ?? ''
    const balance = async () => (await store.listAccounts()).find(({ name }) => name === 'acme')?.balance
    const key = async (id = keyId) => (await store.listKeys()).find((each) => each.id === id)
    const entries = async () =>
      (await store.listEntries('acme', 100)).map(({ kind, amount, runId }) => [kind, amount, runId]).reverse()
    const problems = async () => (await store.verify()).problems
    return { store, accountId, keyId, addKey, newRun, addRun, claim, balance, key, entries, problems }
  }

  describe('credits', () => {
    test('a run is charged to its account and counted against its key', async () => {
      const { addRun, balance, key, entries, problems } = await createStore()
      const standings: unknown[] = []
      const id = await addRun(5, (standing) => standings.push(standing))
      await addRun(2, (standing) => standings.push(standing))
      expect(standings).toEqual([
        { ...USABLE, spent: 0, spendLimit: undefined, used: 0, quota: undefined, balance: 100 },
        { ...USABLE, spent: 5, spendLimit: undefined, used: 1, quota: undefined, balance: 95 },
      ])
      expect(await balance()).toBe(93)
      expect(await key()).toMatchObject({ spent: 7, used: 2 })
      expect((await entries()).slice(0, 2)).toEqual([
        ['added', 100, undefined],
        ['charge', -5, id],
      ])
      expect(await problems()).toEqual([])
    })

    test('a refused run leaves no run, no charge and no use of its key', async () => {
      const { store, addRun, accountId, balance, key, entries, problems } = await createStore()
      const refuse = () => {
        throw new Error('refused')
      }
      await expect(addRun(5, refuse)).rejects.toThrow('refused')
      expect(await store.findRun('run_1', accountId)).toBeUndefined()
      expect(await balance()).toBe(100)
      expect(await key()).toMatchObject({ spent: 0, used: 0 })
      expect(await entries()).toHaveLength(1)
      expect(await problems()).toEqual([])
    })

    const ENDS: readonly [string, (store: Store, id: string) => Promise<unknown>][] = [
      ['fails', (store, id) => store.failRun(held(id, 'me', 9), FAILURE)],
      ['kills its renderer', (store, id) => store.recordCrash(held(id, 'me', 9), GIVEN_UP)],
    ]
    test.each(ENDS)(
      'a run that %s is refunded once, and still counts against the quota',
      async (_name, end) => {
        const { store, addRun, claim, balance, key, entries, problems } = await createStore()
        await addRun(5)
        const id = await claim()
        expect(await end(store, id)).toEqual({ runs: 1, refunded: 5 })
        for (const [, again] of ENDS)
          expect([undefined, { runs: 0, refunded: 0 }]).toContainEqual(await again(store, id))
        expect(await balance()).toBe(100)
        expect(await key()).toMatchObject({ spent: 0, used: 1 })
        expect(await entries()).toEqual([
          ['added', 100, undefined],
          ['charge', -5, id],
          ['refund', 5, id],
        ])
        expect(await problems()).toEqual([])
      },
    )

    test('a run without a key is charged to its account, whose state is checked first', async () => {
      const { store, newRun, balance, entries, key, problems } = await createStore(10)
      const seen: unknown[] = []
      await store.addRun(newRun('one', { price: 4 }), (state) => seen.push(state))
      const unused = { spent: 0, spendLimit: undefined, used: 0, quota: undefined }
      expect(seen).toEqual([{ ...USABLE, ...unused, balance: 10 }])
      const refuse = () => {
        throw new Error('402')
      }
      await expect(store.addRun(newRun('two', { price: 7 }), refuse)).rejects.toThrow('402')
      await store.addRun(newRun('free'), refuse)
      expect(await balance()).toBe(6)
      expect(await key()).toMatchObject({ spent: 0, used: 0 })
      expect(await entries()).toEqual([
        ['added', 10, undefined],
        ['charge', -4, 'one'],
      ])
      await store.setBanned('acme', true)
      await expect(
        store.addRun(newRun('banned', { price: 1 }), ({ banned }) => {
          if (banned) throw new Error('banned')
        }),
      ).rejects.toThrow('banned')
      expect((await claimRun(store, 'me', { only: ['one'] }))?.id).toBe('one')
      expect(await store.failRun(held('one', 'me', 9), FAILURE)).toEqual({
        runs: 1,
        refunded: 4,
      })
      expect(await balance()).toBe(10)
      expect(await problems()).toEqual([])
    })

    test('concurrent creates, with and without keys, never spend more than the balance', async () => {
      const { store, newRun, addKey, balance, key, keyId, problems } = await createStore(40)
      const keys = [keyId, await addKey(), undefined]
      const results = await Promise.allSettled(
        Array.from({ length: 32 }, (_, n) =>
          store.addRun(newRun(`run_${n}`, { price: 3, keyId: keys[n % 3] }), (state) => {
            if (state.balance < 3) throw new Error('402')
          }),
        ),
      )
      const refused = results.flatMap((result) =>
        result.status === 'rejected' ? [result.reason.message] : [],
      )
      expect(refused).toEqual(Array.from({ length: 19 }, () => '402'))
      expect(await balance()).toBe(1)
      const used = async (id: number | undefined) => (await key(id))?.used ?? 0
      const withKey = results.filter(({ status }, n) => status === 'fulfilled' && n % 3 < 2)
      expect((await used(keys[0])) + (await used(keys[1]))).toBe(withKey.length)
      expect(await problems()).toEqual([])
    })

    test('a spend limit and a quota hold for concurrent creates', async () => {
      const { addRun, key, keyId, problems } = await createStore(100)
      const check: Parameters<Store['addRun']>[1] = ({ spent, used }) => {
        if (spent + 2 > 9 || used >= 5) throw new Error('refused')
      }
      await Promise.allSettled(Array.from({ length: 20 }, () => addRun(2, check)))
      expect(await key(keyId)).toMatchObject({ spent: 8, used: 4 })
      expect(await problems()).toEqual([])
    })

    test('concurrent refunds and charges add up', async () => {
      const { store, addRun, claim, balance, problems } = await createStore(60)
      for (let n = 0; n < 15; n++) await addRun(2)
      const claimed: string[] = []
      for (let n = 0; n < 15; n++) claimed.push(await claim())
      await Promise.all([
        ...claimed.map((id) => store.failRun(held(id, 'me', 9), FAILURE)),
        ...Array.from({ length: 15 }, () => addRun(2)),
      ])
      expect(await balance()).toBe(30)
      expect(await problems()).toEqual([])
    })

    test('a balance never falls below zero, even if no rule refuses the run', async () => {
      const { addRun, balance, entries, problems } = await createStore(4)
      await expect(addRun(5)).rejects.toThrow()
      expect(await balance()).toBe(4)
      expect(await entries()).toHaveLength(1)
      expect(await problems()).toEqual([])
    })

    test('an operator adds and removes credits, but not below zero', async () => {
      const { store, balance, entries, problems } = await createStore()
      const seen: number[] = []
      const change = (amount: number, account = 'acme') =>
        store.addCredits({ account, amount, nowMs: 1 }, (after) => {
          seen.push(after)
          if (after < 0) throw new Error('too little')
        })
      expect(await change(50)).toBe(150)
      expect(await change(-30)).toBe(120)
      await expect(change(-121)).rejects.toThrow('too little')
      expect(await change(5, 'nobody')).toBeUndefined()
      expect(seen).toEqual([150, 120, -1])
      expect(await balance()).toBe(120)
      expect(await entries()).toEqual([
        ['added', 100, undefined],
        ['added', 50, undefined],
        ['added', -30, undefined],
      ])
      expect(await problems()).toEqual([])
    })
  })

  test('an account name is created only once', async () => {
    const { store, accountId } = await createStore()
    expect(await store.addAccount({ name: 'acme', credits: 5, nowMs: 1 })).toBeUndefined()
    expect(await store.ensureAccount({ name: 'acme', credits: 5, nowMs: 1 })).toBe(accountId)
    expect(await store.addAccount({ name: 'other', credits: 5, nowMs: 1 })).toMatchObject({
      name: 'other',
      balance: 5,
      banned: false,
      keys: 0,
      runs: 0,
    })
    expect((await store.listAccounts()).map(({ name, balance }) => [name, balance])).toEqual([
      ['acme', 100],
      ['other', 5],
    ])
  })

  test('a ban applies to every key of the account, and to no other', async () => {
    const { store, addKey } = await createStore()
    await addKey({ hash: 'h1' })
    const other = await store.ensureAccount({ name: 'other', credits: 0, nowMs: 0 })
    await addKey({ hash: 'h2', accountId: other })
    const banned = async (hash: string) => (await store.findKey(hash))?.banned
    expect(await store.setBanned('acme', true)).toBe(true)
    expect(await store.setBanned('nobody', true)).toBe(false)
    expect([await banned('h1'), await banned('h2')]).toEqual([true, false])
    await store.setBanned('acme', false)
    expect(await banned('h1')).toBe(false)
  })

  test('a change of a key sets the given fields, and keeps the others', async () => {
    const { store, addKey, key } = await createStore()
    const whole = {
      name: 'build',
      disabled: true,
      spendLimit: 0,
      quota: 7,
      allowedIps: ['10.0.0.0/8', '::1'],
      expiresAtMs: 99,
      rate: { requests: 100, windowMs: 10_000 },
    }
    const id = await addKey({ ...whole, hash: 'h1' })
    expect(await key(id)).toMatchObject({ ...whole, account: 'acme' })
    expect(await store.changeKey(id, { disabled: false, quota: undefined })).toBe(true)
    expect(await key(id)).toMatchObject({ ...whole, disabled: false, quota: undefined })
    expect(await store.findKey('h1')).toMatchObject({
      disabled: false,
      allowedIps: ['10.0.0.0/8', '::1'],
      rate: { requests: 100, windowMs: 10_000 },
    })
    await store.changeKey(id, {
      allowedIps: undefined,
      spendLimit: 3,
      expiresAtMs: undefined,
      rate: undefined,
      name: 'x',
    })
    expect(await key(id)).toMatchObject({
      name: 'x',
      disabled: false,
      spendLimit: 3,
      quota: undefined,
      allowedIps: undefined,
      expiresAtMs: undefined,
      rate: undefined,
    })
    expect(await store.changeKey(999, { disabled: true })).toBe(false)
  })

  test('the last use of a key never moves back in time', async () => {
    const { store, key, keyId, addKey } = await createStore()
    const other = await addKey()
    expect((await key())?.usedAtMs).toBeUndefined()
    await store.recordKeyUse(keyId, 50)
    await store.recordKeyUse(keyId, 40)
    expect((await key())?.usedAtMs).toBe(50)
    await store.recordKeyUse(keyId, 60)
    expect([(await key())?.usedAtMs, (await key(other))?.usedAtMs]).toEqual([60, undefined])
    await store.recordKeyUse(999, 50)
  })
}
