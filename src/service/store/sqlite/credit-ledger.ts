/**
 * Charges and refunds of a run. Each is part of the caller's transaction, so that the run, the entry, the balance and
 * the key's spend change together or not at all.
 */
import type { OpenDatabase, Row } from '../../../host/database.js'
import type { AccountState } from '../../rules/budget.js'
import type { NewRun } from '../contract.js'
import { accountStateOfRow, keylessStateOf } from '../shared-rows.js'
import { ACCOUNT_SQL as SQL } from './account-statements.js'

export interface CreditLedger {
  /** Throws when the key or the account does not exist. */
  accountState(run: Pick<NewRun, 'accountId' | 'keyId'>): AccountState
  charge(run: Pick<NewRun, 'id' | 'accountId' | 'keyId' | 'price'>, nowMs: number): void
  /** `run` is a row of the table. The credits. */
  refund(run: Row, nowMs: number): number
}

export function createCreditLedger({ run, get }: Pick<OpenDatabase, 'run' | 'get'>): CreditLedger {
  return {
    accountState({ accountId, keyId }) {
      const row = keyId === undefined ? get(SQL.balance, accountId) : get(SQL.accountState, keyId)
      if (row === undefined)
        throw new Error(
          keyId === undefined ? `Account ${accountId} does not exist.` : `Key ${keyId} does not exist.`,
        )
      return keyId === undefined ? keylessStateOf(row) : accountStateOfRow(row)
    },
    charge({ id, accountId, keyId, price }, nowMs) {
      if (keyId !== undefined) run(SQL.moveSpend, keyId, price, 1)
      if (price === 0) return
      run(SQL.moveBalance, accountId, -price)
      run(SQL.addEntry, accountId, 'charge', -price, id, keyId ?? null, nowMs)
    },
    refund({ id, account_id, key_id, price }, nowMs) {
      if (Number(price) === 0) return 0
      const [accountId, keyId] = [Number(account_id), key_id === null ? null : Number(key_id)]
      if (keyId !== null) run(SQL.moveSpend, keyId, -Number(price), 0)
      run(SQL.moveBalance, accountId, Number(price))
      run(SQL.addEntry, accountId, 'refund', Number(price), String(id), keyId, nowMs)
      return Number(price)
    },
  }
}
