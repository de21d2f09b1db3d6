/** What the ledger of every database refuses, and what its check finds. */
import { describe, expect, test } from 'vitest'
import { claimRun, held } from '../support/runs.js'
import { FAILURE, fillStore, type OpenDatabase } from './filled-store.js'

export function creditLedgerContract(open: OpenDatabase): void {
  async function createLedger() {
    const { store, run } = await open()
    const { add, keyId } = await fillStore(() => store)
    for (const id of ['one', 'two']) await add({ id, keyId, price: 5 })
    await claimRun(store, 'me')
    await store.failRun(held('one'), FAILURE)
    return { store, run }
  }

  describe('the ledger', () => {
    test('refuses changes of entries, a balance below 0, and a second charge or refund of a run', async () => {
      const { run } = await createLedger()
      for (const sql of ['UPDATE credits SET amount = 1', 'DELETE FROM credits'])
        await expect(run(sql), sql).rejects.toThrow(/only ever added to/)
      await expect(run('UPDATE accounts SET balance = -1')).rejects.toThrow(/check constraint/i)
      for (const kind of ['charge', 'refund']) {
        const sql = `INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
          VALUES (1, '${kind}', 5, 'one', 1, 1)`
        await expect(run(sql), kind).rejects.toThrow(/unique/i)
      }
    })

    test.each([
      ['UPDATE accounts SET balance = 1000', /Account acme has a balance of 1000, and its entries sum to 95/],
      ['UPDATE keys SET spent = 3', /Key 1 has spent 3, and its entries sum to 5/],
      ["UPDATE runs SET price = 6 WHERE id = 'two'", /Run two costs 6, and was charged 5/],
      [
        "UPDATE runs SET status = 'failed' WHERE id = 'two'",
        /Run two is failed, costs 5, and was given back nothing/,
      ],
      [
        "UPDATE runs SET status = 'queued' WHERE id = 'one'",
        /Run one is queued, costs 5, and was given back 5/,
      ],
    ])('shows the problem in a verification after: %s', async (sql, problem) => {
      const { store, run } = await createLedger()
      expect((await store.verify()).problems).toEqual([])
      await run(sql)
      expect((await store.verify()).problems).toEqual(
        expect.arrayContaining([expect.stringMatching(problem)]),
      )
    })
  })
}
