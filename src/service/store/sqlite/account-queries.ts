/** Accounts, keys and credits on SQLite. */
import type { OpenDatabase, Value } from '../../../host/database.js'
import type { AccountStore, KeyTerms, NewAccount, NewKey, Verification } from '../account-store.js'
import {
  accountOfRow,
  checkActiveKeys,
  isSet,
  keyDetailsOfRow,
  keyOfRow,
  ledgerEntryOfRow,
  termValues,
  verificationOf,
} from '../shared-rows.js'
import { ACCOUNT_SQL as SQL } from './account-statements.js'
import { LEDGER_STATEMENTS } from './ledger-check.js'

const valuesOf = (terms: Partial<KeyTerms>): readonly Value[] =>
  termValues<Value>(terms, (value) => (typeof value === 'boolean' ? Number(value) : JSON.stringify(value)))

export function createAccountStore({ run, get, all, transaction, snapshot }: OpenDatabase): AccountStore {
  /** Undefined when the name is taken. */
  function insertAccount({ name, credits, nowMs }: NewAccount): number | undefined {
    const row = get(SQL.addAccount, name, nowMs)
    if (row === undefined) return undefined
    const id = Number(row.id)
    if (credits !== 0) addEntry(id, credits, nowMs)
    return id
  }

  function addEntry(accountId: number, amount: number, nowMs: number): void {
    run(SQL.moveBalance, accountId, amount)
    run(SQL.addEntry, accountId, 'added', amount, null, null, nowMs)
  }

  const insertKey = ({ accountId, name, hash, prefix, nowMs, ...terms }: NewKey): number =>
    Number(get(SQL.addKey, accountId, name, hash, ...valuesOf(terms), nowMs, prefix)?.id)

  /** SQLite fails after its first row when a page cannot be read, so no more are asked for. */
  const findDamage = (): readonly string[] =>
    String(get('PRAGMA integrity_check(1)')?.integrity_check)
      .split('\n')
      .filter((line) => line !== 'ok' && !line.startsWith('***'))

  function verifyLedger(isDamaged: boolean): Verification {
    try {
      return snapshot(() => verificationOf(LEDGER_STATEMENTS.map((sql) => all(sql))))
    } catch (error) {
      // The damage is reported already.
      if (!isDamaged) throw error
      return verificationOf([])
    }
  }

  const accounts = () => all(SQL.listAccounts).map(accountOfRow)

  return {
    ensureAccount: async (account) =>
      transaction(() => insertAccount(account) ?? Number(get(SQL.findAccount, account.name)?.id)),
    addAccount: async (account) =>
      transaction(() => {
        const id = insertAccount(account)
        return id === undefined ? undefined : accounts().find((each) => each.id === id)
      }),
    listAccounts: async () => accounts(),
    setBanned: async (name, banned) => run(SQL.setBanned, name, banned ? 1 : 0).changes > 0,

    addKey: async (key) =>
      transaction(() => {
        if (key.disabled !== true) checkActiveKeys(get(SQL.activeKeys, key.accountId))
        return insertKey(key)
      }),
    addFirstKey: async (key) =>
      transaction(() => {
        if (get(SQL.anyKey) !== undefined) return false
        insertKey(key)
        return true
      }),
    async findKey(hash, nowMs) {
      const row = get(SQL.findKey, hash) ?? get(SQL.findRotatedKey, hash, nowMs)
      return row && keyOfRow(row)
    },
    listKeys: async () => all(SQL.listKeys).map(keyDetailsOfRow),
    changeKey: async (id, changes) =>
      transaction(() => {
        const row = get(SQL.findKeyById, id)
        if (row === undefined) return false
        const terms = { ...keyDetailsOfRow(row), ...changes }
        if (isSet(row.disabled) && !terms.disabled)
          checkActiveKeys(get(SQL.activeKeys, Number(row.account_id)))
        run(SQL.changeKey, id, terms.name, ...valuesOf(terms))
        return true
      }),
    rotateKey: async (id, { hash, prefix, oldUntilMs }) =>
      run(SQL.rotateKey, id, hash, prefix, oldUntilMs).changes > 0,
    recordKeyUse: async (id, usedAtMs) => void run(SQL.recordKeyUse, id, usedAtMs),

    addCredits: async ({ account, amount, nowMs }, check) =>
      transaction(() => {
        const row = get(SQL.findAccount, account)
        if (row === undefined) return undefined
        const balance = Number(row.balance) + amount
        check(balance)
        addEntry(Number(row.id), amount, nowMs)
        return balance
      }),
    listEntries: async (account, limit) => all(SQL.listEntries, account, limit).map(ledgerEntryOfRow),
    async verify() {
      const damage = findDamage()
      const ledger = verifyLedger(damage.length > 0)
      return {
        ...ledger,
        problems: [...damage.map((line) => `The database is damaged: ${line}.`), ...ledger.problems],
      }
    },
  }
}
