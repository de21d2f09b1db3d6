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
} from '../rows.js'
import { ACCOUNTS, ENTRY_COLUMNS, KEYS, LEDGER } from '../statements.js'
import type { PostgresDatabase, Transaction } from './database.js'
import { type PgValue, type PreparedStatement, statementsOf } from './driver.js'

export const ACCOUNT_SQL = statementsOf({
  ...ACCOUNTS,

  lockAccount: `SELECT id, balance FROM accounts WHERE name = $1 FOR NO KEY UPDATE`,

  // Locks the account, so that its keys are counted and added, or enabled, one after the other.
  lockAccountOfKeys: `SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE`,

  lockAccountOfKey: `
    SELECT accounts.id FROM accounts JOIN keys ON keys.account_id = accounts.id WHERE keys.id = $1
    FOR NO KEY UPDATE OF accounts`,

  activeKeys: `SELECT count(*) AS active FROM keys WHERE account_id = $1 AND NOT disabled`,

  lockKeys: `LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE`,

  lockKey: `${KEYS} WHERE keys.id = $1 FOR NO KEY UPDATE OF keys`,

  // The balance duplicates the sum of the entries, so that a create does not have to compute it.
  addCredits: `
    WITH moved AS (UPDATE accounts SET balance = balance + $2::bigint WHERE id = $1)
    INSERT INTO credits (account_id, kind, amount, created_at) VALUES ($1, 'added', $2::bigint, $3)`,

  listEntries: `
    SELECT ${ENTRY_COLUMNS} FROM credits JOIN accounts ON accounts.id = credits.account_id
    WHERE accounts.name = $1 ORDER BY credits.sequence DESC
    LIMIT CASE WHEN $2::bigint < 0 THEN NULL ELSE $2::bigint END`,
})

export const LEDGER_STATEMENTS: readonly PreparedStatement[] = Object.values(
  statementsOf({
    ...LEDGER,

    queues: `
      SELECT format('Account %s has %s queued runs that no worker finds.', name, queued) AS problem
      FROM (
        SELECT account_id, count(*) AS queued FROM runs WHERE status = 'queued' GROUP BY account_id
      ) AS queues JOIN accounts ON accounts.id = account_id LEFT JOIN turns USING (account_id)
      WHERE queued_since IS NULL`,
  }),
)

const valuesOf = (terms: Partial<KeyTerms>): readonly PgValue[] =>
  termValues<PgValue>(terms, (value) => value)

export function createAccountStore(database: PostgresDatabase): AccountStore {
  const { transaction, snapshot, get, run } = database

  /** Returns undefined if the name is taken. */
  async function insertAccount(tx: Transaction, account: NewAccount): Promise<number | undefined> {
    const row = await tx.get(ACCOUNT_SQL.addAccount, account.name, account.nowMs)
    if (row === undefined) return undefined
    const id = Number(row.id)
    if (account.credits !== 0) await tx.run(ACCOUNT_SQL.addCredits, id, account.credits, account.nowMs)
    return id
  }

  async function insertKey(tx: Transaction, key: NewKey): Promise<number> {
    const { accountId, name, hash, prefix, nowMs, ...terms } = key
    return Number(
      (await tx.get(ACCOUNT_SQL.addKey, accountId, name, hash, ...valuesOf(terms), nowMs, prefix))?.id,
    )
  }

  /**
   * Returns the id of the key with this hash if an earlier attempt may have added it. A hash is random, so a match is
   * the same key.
   */
  async function addedBefore(tx: Transaction, hash: string): Promise<number | undefined> {
    if (!tx.mayHaveCommitted) return undefined
    const row = await tx.get(ACCOUNT_SQL.findKey, hash)
    return row && Number(row.id)
  }

  const accounts = async () =>
    (await snapshot((read) => read.all(ACCOUNT_SQL.listAccounts))).map(accountOfRow)

  return {
    ensureAccount: (account) =>
      transaction(
        async (tx) => {
          const found = await tx.get(ACCOUNT_SQL.findAccount, account.name)
          if (found !== undefined) return Number(found.id)
          const added = await insertAccount(tx, account)
          return added ?? Number((await tx.get(ACCOUNT_SQL.findAccount, account.name))?.id)
        },
        { repeatable: true },
      ),
    async addAccount(account) {
      const id = await transaction((tx) => insertAccount(tx, account))
      return id === undefined ? undefined : (await accounts()).find((each) => each.id === id)
    },
    listAccounts: accounts,
    setBanned: async (name, banned) => (await run(ACCOUNT_SQL.setBanned, name, banned)) > 0,

    addKey: (key) =>
      transaction(
        async (tx) => {
          await tx.run(ACCOUNT_SQL.lockAccountOfKeys, key.accountId)
          const before = await addedBefore(tx, key.hash)
          if (before !== undefined) return before
          if (key.disabled !== true) checkActiveKeys(await tx.get(ACCOUNT_SQL.activeKeys, key.accountId))
          return await insertKey(tx, key)
        },
        { repeatable: true },
      ),
    addFirstKey: (key) =>
      transaction(
        async (tx) => {
          if ((await addedBefore(tx, key.hash)) !== undefined) return true
          const hasKey = async () => (await tx.get(ACCOUNT_SQL.anyKey)) !== undefined
          if (await hasKey()) return false
          // Locks the table, so that nodes that start at the same time add only one first key.
          await tx.run(ACCOUNT_SQL.lockKeys)
          if (await hasKey()) return false
          await insertKey(tx, key)
          return true
        },
        { repeatable: true },
      ),
    async findKey(hash, nowMs) {
      const row =
        (await get(ACCOUNT_SQL.findKey, hash)) ?? (await get(ACCOUNT_SQL.findRotatedKey, hash, nowMs))
      return row && keyOfRow(row)
    },
    listKeys: async () => (await snapshot((read) => read.all(ACCOUNT_SQL.listKeys))).map(keyDetailsOfRow),
    changeKey: (id, changes) =>
      transaction(
        async (tx) => {
          // Locks the account before the key, in the same order as creates, to avoid a deadlock.
          if (changes.disabled === false) await tx.run(ACCOUNT_SQL.lockAccountOfKey, id)
          const row = await tx.get(ACCOUNT_SQL.lockKey, id)
          if (row === undefined || row.archived_at !== null) return false
          if (isSet(row.disabled) && changes.disabled === false)
            checkActiveKeys(await tx.get(ACCOUNT_SQL.activeKeys, Number(row.account_id)))
          const terms = { ...keyDetailsOfRow(row), ...changes }
          await tx.run(ACCOUNT_SQL.changeKey, id, terms.name, ...valuesOf(terms))
          return true
        },
        { repeatable: true },
      ),
    rotateKey: async (id, { hash, prefix, oldUntilMs }) =>
      (await run(ACCOUNT_SQL.rotateKey, id, hash, prefix, oldUntilMs)) > 0,
    archiveKey: async (id, nowMs) => void (await run(ACCOUNT_SQL.archiveKey, id, nowMs)),
    recordKeyUse: async (id, usedAtMs) => void (await run(ACCOUNT_SQL.recordKeyUse, id, usedAtMs)),

    addCredits: ({ account, amount, nowMs }, check) =>
      transaction(async (tx) => {
        const row = await tx.get(ACCOUNT_SQL.lockAccount, account)
        if (row === undefined) return undefined
        const balance = Number(row.balance) + amount
        check(balance)
        await tx.run(ACCOUNT_SQL.addCredits, Number(row.id), amount, nowMs)
        return balance
      }),
    listEntries: async (account, limit) =>
      (await snapshot((read) => read.all(ACCOUNT_SQL.listEntries, account, limit))).map(ledgerEntryOfRow),
    verify: () =>
      snapshot(async (read) => {
        const results = []
        for (const statement of LEDGER_STATEMENTS) results.push(await read.all(statement))
        return verificationOf(results)
      }),
  }
}
