/** Accounts, keys and credits. */
import type { AccountStore, KeyTerms, NewAccount, NewKey } from './account-store.js'
import {
  accountOfRow,
  checkActiveKeys,
  isSet,
  keyDetailsOfRow,
  keyOfRow,
  ledgerEntryOfRow,
  termValues,
  verificationOf,
} from './rows.js'
import { checkSession, type Database, type Dialect, repeatable, type Transaction } from './sql.js'
import { ENTRY_COLUMNS, KEYS, LEDGER, MOVE_BALANCE, UNKNOWN_RUNS } from './statements.js'

const sqlOf = ({ lock }: Dialect) => ({
  addAccount: `
    INSERT INTO accounts (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id`,

  findAccount: `SELECT id, balance FROM accounts WHERE name = $1`,

  lockAccountByName: `SELECT id, balance FROM accounts WHERE name = $1${lock()}`,

  // Locks the account, so that its keys are counted and added, or enabled, one after the other.
  lockAccount: `SELECT id FROM accounts WHERE id = $1${lock()}`,

  // Groups before the join: a subquery per account would read all runs once per account.
  listAccounts: `
    SELECT accounts.id, accounts.name, accounts.balance, accounts.banned, accounts.created_at,
      coalesce(keyed.keys, 0) AS keys, coalesce(made.runs, 0) AS runs
    FROM accounts
    LEFT JOIN (SELECT account_id, count(*) AS keys FROM keys GROUP BY account_id) AS keyed
      ON keyed.account_id = accounts.id
    LEFT JOIN (SELECT account_id, count(*) AS runs FROM runs GROUP BY account_id) AS made
      ON made.account_id = accounts.id
    ORDER BY accounts.id`,

  setBanned: `UPDATE accounts SET banned = $2 WHERE name = $1`,

  addKey: `
    INSERT INTO keys (account_id, name, hash, disabled, expires_at, spend_limit, quota, allowed_ips,
      rate_requests, rate_window_ms, created_at, prefix)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    RETURNING id`,

  anyKey: `SELECT id FROM keys LIMIT 1`,

  activeKeys: `SELECT count(*) AS active FROM keys WHERE account_id = $1 AND NOT disabled`,

  // Only the columns that the key check needs, because every request reads them.
  findKey: `
    SELECT keys.id, keys.account_id, keys.disabled, keys.expires_at, keys.allowed_ips, keys.rate_requests,
      keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.hash = $1`,

  accountOfKey: `SELECT account_id FROM keys WHERE id = $1`,

  lockKey: `${KEYS} WHERE keys.id = $1${lock('keys')}`,

  listKeys: `${KEYS} ORDER BY keys.id`,

  changeKey: `
    UPDATE keys SET name = $2, disabled = $3, expires_at = $4, spend_limit = $5, quota = $6, allowed_ips = $7,
      rate_requests = $8, rate_window_ms = $9
    WHERE id = $1`,

  recordKeyUse: `UPDATE keys SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at < $2, true)`,

  addEntry: `INSERT INTO credits (account_id, kind, amount, created_at) VALUES ($1, 'added', $2, $3)`,

  listEntries: `
    SELECT ${ENTRY_COLUMNS} FROM credits JOIN accounts ON accounts.id = credits.account_id
    WHERE accounts.name = $1 ORDER BY credits.sequence DESC LIMIT $2`,
})

type Statements = ReturnType<typeof sqlOf>

export function createAccountStore(database: Database): AccountStore {
  const { transaction, snapshot, get, run, dialect } = database
  const SQL = sqlOf(dialect)

  /** Returns undefined if the name is taken. */
  async function insertAccount(tx: Transaction, account: NewAccount): Promise<number | undefined> {
    const row = await tx.get(SQL.addAccount, account.name, account.nowMs)
    if (row === undefined) return undefined
    const id = Number(row.id)
    if (account.credits !== 0) await addEntry(tx, id, account.credits, account.nowMs)
    return id
  }

  async function addEntry(tx: Transaction, accountId: number, amount: number, nowMs: number): Promise<void> {
    await tx.run(MOVE_BALANCE, accountId, amount)
    await tx.run(SQL.addEntry, accountId, amount, nowMs)
  }

  return {
    ensureAccount: (account) =>
      repeatable(database, async (tx) => {
        const find = () => tx.get(SQL.findAccount, account.name)
        // Looks first: on PostgreSQL, an INSERT that adds nothing uses up an id.
        const found = await find()
        if (found !== undefined) return Number(found.id)
        return (await insertAccount(tx, account)) ?? Number((await find())?.id)
      }),
    async addAccount(account) {
      const id = await transaction((tx) => insertAccount(tx, account))
      const { name, credits: balance, nowMs: createdAtMs } = account
      return id === undefined
        ? undefined
        : { id, name, balance, banned: false, keys: 0, runs: 0, createdAtMs }
    },
    listAccounts: async () => (await snapshot((read) => read.all(SQL.listAccounts))).map(accountOfRow),
    setBanned: async (name, banned) => (await run(SQL.setBanned, name, banned)) > 0,

    addKey: (key) =>
      transaction(async (tx) => {
        if (key.by !== undefined) await checkSession(tx, dialect, key.by)
        await tx.get(SQL.lockAccount, key.accountId)
        if (key.disabled !== true) checkActiveKeys(await tx.get(SQL.activeKeys, key.accountId))
        return await insertKey(tx, SQL, key)
      }),
    addFirstKey: (key) =>
      transaction(async (tx) => {
        // Nodes that start at the same time add the first key of the same account.
        await tx.get(SQL.lockAccount, key.accountId)
        if ((await tx.get(SQL.anyKey)) !== undefined) return false
        await insertKey(tx, SQL, key)
        return true
      }),
    async findKey(hash) {
      const row = await get(SQL.findKey, hash)
      return row && keyOfRow(row)
    },
    listKeys: async () => (await snapshot((read) => read.all(SQL.listKeys))).map(keyDetailsOfRow),
    changeKey: (id, changes: Partial<KeyTerms>, by) =>
      repeatable(database, async (tx) => {
        if (by !== undefined) await checkSession(tx, dialect, by)
        const owner = await tx.get(SQL.accountOfKey, id)
        if (owner === undefined) return false
        // Locks the account before the key, in the same order as creates, to avoid a deadlock.
        await tx.get(SQL.lockAccount, Number(owner.account_id))
        const row = await tx.get(SQL.lockKey, id)
        if (row === undefined) return false
        if (isSet(row.disabled) && changes.disabled === false)
          checkActiveKeys(await tx.get(SQL.activeKeys, Number(row.account_id)))
        const terms = { ...keyDetailsOfRow(row), ...changes }
        await tx.run(SQL.changeKey, id, terms.name, ...termValues(terms))
        return true
      }),
    recordKeyUse: async (id, usedAtMs) => void (await run(SQL.recordKeyUse, id, usedAtMs)),

    addCredits: ({ account, amount, nowMs }, check) =>
      transaction(async (tx) => {
        const row = await tx.get(SQL.lockAccountByName, account)
        if (row === undefined) return undefined
        const balance = Number(row.balance) + amount
        check(balance)
        await addEntry(tx, Number(row.id), amount, nowMs)
        return balance
      }),
    listEntries: async (account, limit) =>
      (await snapshot((read) => read.all(SQL.listEntries, account, limit))).map(ledgerEntryOfRow),
    verify: () =>
      snapshot(async (read) => {
        const results = []
        for (const statement of Object.values(LEDGER)) results.push(await read.all(statement))
        const unknown = (await read.all(UNKNOWN_RUNS)).map(({ id }) => String(id))
        return { ...verificationOf(results), unknown }
      }),
  }
}

async function insertKey(tx: Transaction, SQL: Statements, key: NewKey): Promise<number> {
  const { accountId, name, hash, prefix, nowMs, by: _, ...terms } = key
  const values = [accountId, name, hash, ...termValues(terms), nowMs, prefix]
  return Number((await tx.get(SQL.addKey, ...values))?.id)
}
