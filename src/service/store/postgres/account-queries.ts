/** Accounts, keys and credits on PostgreSQL. */
import type { AccountStore, KeyTerms, NewAccount, NewKey } from '../account-store.js'
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
import { LEDGER_STATEMENTS, ACCOUNT_SQL as SQL } from './account-statements.js'
import type { PostgresDatabase, Transaction } from './database.js'
import type { Value } from './driver.js'

const valuesOf = (terms: Partial<KeyTerms>): readonly Value[] => termValues<Value>(terms, (value) => value)

export function createAccountStore(database: PostgresDatabase): AccountStore {
  const { transaction, snapshot, get, run } = database

  /** Undefined when the name is taken. */
  async function insertAccount(tx: Transaction, account: NewAccount): Promise<number | undefined> {
    const row = await tx.get(SQL.addAccount, account.name, account.nowMs)
    if (row === undefined) return undefined
    const id = Number(row.id)
    if (account.credits !== 0) await tx.run(SQL.addCredits, id, account.credits, account.nowMs)
    return id
  }

  async function insertKey(tx: Transaction, key: NewKey): Promise<number> {
    const { accountId, name, hash, prefix, nowMs, ...terms } = key
    return Number((await tx.get(SQL.addKey, accountId, name, hash, ...valuesOf(terms), nowMs, prefix))?.id)
  }

  /** The key of this hash, which is random, if an attempt before may have added it. */
  async function addedBefore(tx: Transaction, hash: string): Promise<number | undefined> {
    if (!tx.mayBeDone) return undefined
    const row = await tx.get(SQL.findKey, hash)
    return row && Number(row.id)
  }

  const accounts = async () => (await snapshot((read) => read.all(SQL.listAccounts))).map(accountOfRow)

  return {
    ensureAccount: (account) =>
      transaction(
        async (tx) => {
          const found = await tx.get(SQL.findAccount, account.name)
          if (found !== undefined) return Number(found.id)
          const added = await insertAccount(tx, account)
          return added ?? Number((await tx.get(SQL.findAccount, account.name))?.id)
        },
        { repeatable: true },
      ),
    async addAccount(account) {
      const id = await transaction((tx) => insertAccount(tx, account))
      return id === undefined ? undefined : (await accounts()).find((each) => each.id === id)
    },
    listAccounts: accounts,
    setBanned: async (name, banned) => (await run(SQL.setBanned, name, banned)) > 0,

    addKey: (key) =>
      transaction(
        async (tx) => {
          await tx.run(SQL.lockAccountOfKeys, key.accountId)
          const before = await addedBefore(tx, key.hash)
          if (before !== undefined) return before
          if (key.disabled !== true) checkActiveKeys(await tx.get(SQL.activeKeys, key.accountId))
          return await insertKey(tx, key)
        },
        { repeatable: true },
      ),
    addFirstKey: (key) =>
      transaction(
        async (tx) => {
          if ((await addedBefore(tx, key.hash)) !== undefined) return true
          const hasKey = async () => (await tx.get(SQL.anyKey)) !== undefined
          if (await hasKey()) return false
          // Nodes that start together make one first key.
          await tx.run(SQL.lockKeys)
          if (await hasKey()) return false
          await insertKey(tx, key)
          return true
        },
        { repeatable: true },
      ),
    async findKey(hash, nowMs) {
      const row = (await get(SQL.findKey, hash)) ?? (await get(SQL.findRotatedKey, hash, nowMs))
      return row && keyOfRow(row)
    },
    listKeys: async () => (await snapshot((read) => read.all(SQL.listKeys))).map(keyDetailsOfRow),
    changeKey: (id, changes) =>
      transaction(
        async (tx) => {
          // Before the key: creates lock both in this order.
          if (changes.disabled === false) await tx.run(SQL.lockAccountOfKey, id)
          const row = await tx.get(SQL.lockKey, id)
          if (row === undefined) return false
          if (isSet(row.disabled) && changes.disabled === false)
            checkActiveKeys(await tx.get(SQL.activeKeys, Number(row.account_id)))
          const terms = { ...keyDetailsOfRow(row), ...changes }
          await tx.run(SQL.changeKey, id, terms.name, ...valuesOf(terms))
          return true
        },
        { repeatable: true },
      ),
    rotateKey: async (id, { hash, prefix, oldUntilMs }) =>
      (await run(SQL.rotateKey, id, hash, prefix, oldUntilMs)) > 0,
    recordKeyUse: async (id, usedAtMs) => void (await run(SQL.recordKeyUse, id, usedAtMs)),

    addCredits: ({ account, amount, nowMs }, check) =>
      transaction(async (tx) => {
        const row = await tx.get(SQL.lockAccount, account)
        if (row === undefined) return undefined
        const balance = Number(row.balance) + amount
        check(balance)
        await tx.run(SQL.addCredits, Number(row.id), amount, nowMs)
        return balance
      }),
    listEntries: async (account, limit) =>
      (await snapshot((read) => read.all(SQL.listEntries, account, limit))).map(ledgerEntryOfRow),
    verify: () =>
      snapshot(async (read) => {
        const results = []
        for (const statement of LEDGER_STATEMENTS) results.push(await read.all(statement))
        return verificationOf(results)
      }),
  }
}
