/** What every database keeps to about keys and credits. */
import { describe, expect, test } from 'vitest'
import { newRun } from '../support/runs.js'
import { fillStore, type OpenStore } from './filled-store.js'

export function accountContract(open: OpenStore): void {
  test('concurrent creates exceed neither a spend limit nor a quota nor the balance', async () => {
    const { add, addKey, key, balance, problems } = await fillStore(open, 23)
    const limited = await addKey({ spendLimit: 9 })
    const counted = await addKey({ quota: 5 })
    const refused: unknown[] = []
    for (const keyId of [limited, counted, undefined])
      for (const result of await Promise.allSettled(
        Array.from({ length: 20 }, () => add({ keyId, price: 2 })),
      ))
        if (result.status === 'rejected') refused.push(result.reason.code)
    expect(refused).toEqual([
      ...Array(16).fill('api_key_spend_limit_exceeded'),
      ...Array(15).fill('USAGE_EXCEEDED'),
      ...Array(18).fill('insufficient_balance'),
    ])
    expect([await key(limited), await key(counted)]).toMatchObject([
      { spent: 8, used: 4 },
      { spent: 10, used: 5 },
    ])
    expect([await balance(), await problems()]).toEqual([1, []])
  })

  test('concurrent creates with one idempotency key are one run, paid once, even with the last credits', async () => {
    const { store, accountId, balance } = await fillStore(open, 10)
    const create = (id: string, request: string) =>
      store.addRun(newRun({ id, accountId, price: 7, idempotency: { key: 'k', request, sinceMs: 0 } }))
    const together = await Promise.all(['one', 'two', 'three'].map((id) => create(id, 'a fox')))
    expect(together).toEqual(Array(3).fill({ id: expect.any(String) }))
    expect(new Set(together.map((run) => JSON.stringify(run))).size).toBe(1)
    expect(await create('four', 'a bear')).toEqual({ refused: 'key_reused' })
    expect(await balance()).toBe(3)
  })

  describe('a key', () => {
    test('keeps the fields that a change does not name', async () => {
      const { store, addKey, key } = await fillStore(open)
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
      const { store, key, keyId, addKey } = await fillStore(open)
      const other = await addKey()
      for (const nowMs of [50, 40]) await store.recordKeyUse(keyId, nowMs)
      const used = async (id: number) => (await key(id))?.usedAtMs
      expect([await used(keyId), await used(other)]).toEqual([50, undefined])
      await store.recordKeyUse(keyId, 60)
      expect(await used(keyId)).toBe(60)
    })
  })
}
