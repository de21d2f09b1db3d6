/** What every database keeps to about accounts, keys and credits. */
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/service/store/index.js'
import { claimRun, held } from '../support/index.js'
import { crashLimit, FAILURE, fillStore, type OpenStore, refuse } from './filled-store.js'

const USABLE = { disabled: false, expiresAtMs: undefined, banned: false }
const NO_LIMITS = { spendLimit: undefined, quota: undefined }

export function accountContract(open: OpenStore): void {
  async function fill(credits = 100) {
    const filled = await fillStore(open, credits)
    const { store, keyId } = filled
    /** Runs of the key. */
    const add = (price: number, check?: Parameters<Store['addRun']>[1]) => filled.add({ keyId, price }, check)
    const claim = async () => (await claimRun(store, 'me'))?.id ?? ''
    const entries = async () =>
      (await store.listEntries('acme', 100)).map(({ kind, amount, runId }) => [kind, amount, runId]).reverse()
    return { ...filled, add, addRun: filled.add, claim, entries }
  }

  describe('credits', () => {
    test('a run is charged to its account and counted against its key', async () => {
      const { add, balance, key, entries, problems } = await fill()
      const standings: unknown[] = []
      const id = await add(5, (standing) => standings.push(standing))
      await add(2, (standing) => standings.push(standing))
      expect(standings).toEqual([
        { ...USABLE, ...NO_LIMITS, spent: 0, used: 0, balance: 100 },
        { ...USABLE, ...NO_LIMITS, spent: 5, used: 1, balance: 95 },
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
      const { store, add, balance, key, entries } = await fill()
      await expect(add(5, refuse)).rejects.toThrow('refused')
      expect(await balance()).toBe(100)
      expect(await key()).toMatchObject({ spent: 0, used: 0 })
      expect(await entries()).toHaveLength(1)
      expect(await store.verify()).toMatchObject({ runs: 0, problems: [] })
    })

    const ENDS: readonly [string, (store: Store, id: string) => Promise<unknown>][] = [
      ['fails', (store, id) => store.failRun(held(id), FAILURE)],
      ['kills its renderer', (store, id) => store.recordCrash(held(id), crashLimit(1))],
    ]
    test.each(ENDS)('a run that %s is refunded once, and still counts against the quota', async (_, end) => {
      const { store, add, claim, balance, key, entries, problems } = await fill()
      await add(5)
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
    })

    test('a run without a key is charged to its account, whose state is checked unless it is free', async () => {
      const { store, addRun, claim, balance, entries, key, problems } = await fill(10)
      const seen: unknown[] = []
      await addRun({ id: 'one', price: 4 }, (state) => seen.push(state))
      expect(seen).toEqual([{ ...USABLE, ...NO_LIMITS, spent: 0, used: 0, balance: 10 }])
      await expect(addRun({ price: 7 }, refuse)).rejects.toThrow('refused')
      await addRun({ id: 'free' }, refuse)
      expect(await balance()).toBe(6)
      expect(await key()).toMatchObject({ spent: 0, used: 0 })
      expect(await entries()).toEqual([
        ['added', 10, undefined],
        ['charge', -4, 'one'],
      ])
      await store.setBanned('acme', true)
      await expect(addRun({ price: 1 })).rejects.toMatchObject({ code: 'account_banned' })
      expect(await claim()).toBe('one')
      expect(await store.failRun(held('one'), FAILURE)).toEqual({ runs: 1, refunded: 4 })
      expect(await balance()).toBe(10)
      expect(await problems()).toEqual([])
    })

    test('concurrent creates, with and without keys, never spend more than the balance', async () => {
      const { addRun, addKey, balance, key, keyId, problems } = await fill(40)
      const keys = [keyId, await addKey(), undefined]
      const results = await Promise.allSettled(
        Array.from({ length: 32 }, (_, n) => addRun({ price: 3, keyId: keys[n % 3] })),
      )
      const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
      expect(refused).toEqual(Array(19).fill('insufficient_balance'))
      expect(await balance()).toBe(1)
      const used = async (id: number | undefined) => (await key(id))?.used ?? 0
      const withKey = results.filter(({ status }, n) => status === 'fulfilled' && n % 3 < 2)
      expect((await used(keys[0])) + (await used(keys[1]))).toBe(withKey.length)
      expect(await problems()).toEqual([])
    })

    test('a spend limit and a quota hold for concurrent creates', async () => {
      const { addRun, addKey, key, problems } = await fill()
      const limited = await addKey({ spendLimit: 9 })
      const counted = await addKey({ quota: 5 })
      for (const keyId of [limited, counted])
        await Promise.allSettled(Array.from({ length: 20 }, () => addRun({ keyId, price: 2 })))
      expect(await key(limited)).toMatchObject({ spent: 8, used: 4 })
      expect(await key(counted)).toMatchObject({ spent: 10, used: 5 })
      expect(await problems()).toEqual([])
    })

    test('concurrent refunds and charges add up', async () => {
      const { store, add, claim, balance, problems } = await fill(60)
      for (let n = 0; n < 15; n++) await add(2)
      const claimed: string[] = []
      for (let n = 0; n < 15; n++) claimed.push(await claim())
      await Promise.all([
        ...claimed.map((id) => store.failRun(held(id), FAILURE)),
        ...Array.from({ length: 15 }, () => add(2)),
      ])
      expect(await balance()).toBe(30)
      expect(await problems()).toEqual([])
    })

    test('a balance never falls below zero, even if no rule refuses the run', async () => {
      const { add, balance, entries, problems } = await fill(4)
      await expect(add(5, () => {})).rejects.toThrow()
      expect(await balance()).toBe(4)
      expect(await entries()).toHaveLength(1)
      expect(await problems()).toEqual([])
    })

    test('an operator adds and removes credits, but not below zero', async () => {
      const { store, entries, problems } = await fill()
      const seen: number[] = []
      const change = (amount: number, account = 'acme') =>
        store.addCredits({ account, amount, nowMs: 1 }, (after) => {
          seen.push(after)
          if (after < 0) refuse()
        })
      expect(await change(50)).toBe(150)
      expect(await change(-30)).toBe(120)
      await expect(change(-121)).rejects.toThrow('refused')
      expect(await change(5, 'nobody')).toBeUndefined()
      expect(seen).toEqual([150, 120, -1])
      expect((await entries()).map(([kind, amount]) => [kind, amount])).toEqual([
        ['added', 100],
        ['added', 50],
        ['added', -30],
      ])
      expect(await problems()).toEqual([])
    })
  })

  test('an account name is created only once', async () => {
    const { store, accountId } = await fill()
    expect(await store.addAccount({ name: 'acme', credits: 5, nowMs: 1 })).toBeUndefined()
    expect(await store.ensureAccount({ name: 'acme', credits: 5, nowMs: 1 })).toBe(accountId)
    const other = { name: 'other', balance: 5, banned: false, keys: 0, runs: 0 }
    expect(await store.addAccount({ name: 'other', credits: 5, nowMs: 1 })).toMatchObject(other)
    expect(await store.listAccounts()).toMatchObject([{ name: 'acme', balance: 100 }, other])
  })

  test('a ban applies to every key of the account, and to no other', async () => {
    const { store, addKey } = await fill()
    await addKey({ hash: 'ours' })
    const other = await store.ensureAccount({ name: 'other', credits: 0, nowMs: 0 })
    await addKey({ hash: 'theirs', accountId: other })
    const banned = async () => [
      (await store.findKey('ours'))?.banned,
      (await store.findKey('theirs'))?.banned,
    ]
    expect(await store.setBanned('acme', true)).toBe(true)
    expect(await store.setBanned('nobody', true)).toBe(false)
    expect(await banned()).toEqual([true, false])
    await store.setBanned('acme', false)
    expect(await banned()).toEqual([false, false])
  })

  describe('a key', () => {
    test('is found only by its hash, and the first one is created once', async () => {
      const store = await open()
      const accountId = await store.ensureAccount({ name: 'default', credits: 100, nowMs: 0 })
      const first = { accountId, hash: 'h1', prefix: 'rk_first', name: 'first', nowMs: 0 }
      expect(await store.addFirstKey(first)).toBe(true)
      expect(await store.addFirstKey({ ...first, hash: 'h2' })).toBe(false)
      expect(await store.findKey('h1')).toMatchObject({ accountId, disabled: false, expiresAtMs: undefined })
      expect(await store.findKey('h2')).toBeUndefined()
    })

    test('keeps the fields that a change does not name', async () => {
      const { store, addKey, key } = await fill()
      const rate = { requests: 100, windowMs: 10_000 }
      const whole = {
        ...{ name: 'build', disabled: true, spendLimit: 0, quota: 7, expiresAtMs: 99 },
        ...{ allowedIps: ['10.0.0.0/8', '::1'], rate },
      }
      const id = await addKey({ ...whole, hash: 'whole' })
      expect(await key(id)).toMatchObject({ ...whole, account: 'acme' })
      expect(await store.changeKey(id, { disabled: false, quota: undefined })).toBe(true)
      expect(await key(id)).toMatchObject({ ...whole, disabled: false, quota: undefined })
      const { allowedIps } = whole
      expect(await store.findKey('whole')).toMatchObject({ disabled: false, allowedIps, rate })
      const none = { allowedIps: undefined, expiresAtMs: undefined, rate: undefined }
      await store.changeKey(id, { ...none, spendLimit: 3, name: 'x' })
      const changed = { ...none, spendLimit: 3, name: 'x', disabled: false, quota: undefined }
      expect(await key(id)).toMatchObject(changed)
      expect(await store.changeKey(999, { disabled: true })).toBe(false)
    })

    test('has a time of its last use, which never moves back', async () => {
      const { store, key, keyId, addKey } = await fill()
      const other = await addKey()
      const used = async (id?: number) => (await key(id))?.usedAtMs
      expect(await used()).toBeUndefined()
      for (const nowMs of [50, 40]) await store.recordKeyUse(keyId, nowMs)
      expect(await used()).toBe(50)
      await store.recordKeyUse(keyId, 60)
      expect([await used(), await used(other)]).toEqual([60, undefined])
      await store.recordKeyUse(999, 50)
    })
  })
}
