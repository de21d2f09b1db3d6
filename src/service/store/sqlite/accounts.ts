/** Accounts, keys and credits on SQLite. */
import type { OpenDatabase, Row, SqlValue } from '../../../host/database.js'
import type { AccountState } from '../../rules/key-checks.js'
import type { AccountStore, KeyTerms, NewAccount, NewKey, Verification } from '../account-store.js'
import type { NewRun } from '../contract.js'
import {
  accountOfRow,
  accountStateOfRow,
  checkActiveKeys,
  isSet,
  keyDetailsOfRow,
  keylessStateOf,
  keyOfRow,
  ledgerEntryOfRow,
  termValues,
  verificationOf,
} from '../rows.js'
import { ACCOUNTS, ENTRY_COLUMNS, KEYS, LEDGER, sqliteText, sqliteTexts } from '../statements.js'

const SQL = {
  ...sqliteTexts(ACCOUNTS),

  activeKeys: `SELECT count(*) AS active FROM keys WHERE account_id = ?1 AND disabled = 0`,

  findKeyById: sqliteText(`${KEYS} WHERE keys.id = $1`),

  accountState: `
    SELECT keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.id = ?1`,

  balance: `SELECT balance, banned FROM accounts WHERE id = ?1`,

  // Balances and spends duplicate the sums of the entries, so that a create does not have to compute them.
  moveBalance: `UPDATE accounts SET balance = balance + ?2 WHERE id = ?1`,

  moveSpend: `UPDATE keys SET spent = spent + ?2, used = used + ?3 WHERE id = ?1`,

  addEntry: `
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,

  listEntries: `
    SELECT ${ENTRY_COLUMNS} FROM credits JOIN accounts ON accounts.id = credits.account_id
    WHERE accounts.name = ?1 ORDER BY credits.sequence DESC LIMIT ?2`,
} as const

export const LEDGER_STATEMENTS: readonly string[] = Object.values(LEDGER)

const valuesOf = (terms: Partial<KeyTerms>): readonly SqlValue[] =>
  termValues<SqlValue>(terms, (value) => (typeof value === 'boolean' ? Number(value) : JSON.stringify(value)))

export function createAccountStore({ run, get, all, transaction, snapshot }: OpenDatabase): AccountStore {
  /** Returns undefined if the name is taken. */
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

  /**
   * Returns the result of the integrity check. Asks for one row only, because SQLite fails after its first row if a
   * page cannot be read.
   */
  const findCorruption = (): readonly string[] =>
    String(get('PRAGMA integrity_check(1)')?.integrity_check)
      .split('\n')
      .filter((line) => line !== 'ok' && !line.startsWith('***'))

  function verifyLedger(isCorrupt: boolean): Verification {
    try {
      return snapshot(() => verificationOf(LEDGER_STATEMENTS.map((sql) => all(sql))))
    } catch (error) {
      // The corruption is already reported.
      if (!isCorrupt) throw error
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
        if (row === undefined || row.archived_at !== null) return false
        const terms = { ...keyDetailsOfRow(row), ...changes }
        if (isSet(row.disabled) && !terms.disabled)
          checkActiveKeys(get(SQL.activeKeys, Number(row.account_id)))
        run(SQL.changeKey, id, terms.name, ...valuesOf(terms))
        return true
      }),
    rotateKey: async (id, { hash, prefix, oldUntilMs }) =>
      run(SQL.rotateKey, id, hash, prefix, oldUntilMs).changes > 0,
    archiveKey: async (id, nowMs) => void run(SQL.archiveKey, id, nowMs),
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
      const corruption = findCorruption()
      const ledger = verifyLedger(corruption.length > 0)
      return {
        ...ledger,
        problems: [...corruption.map((line) => `The database is damaged: ${line}.`), ...ledger.problems],
      }
    },
  }
}

/**
 * Charges and refunds runs within the caller's transaction, so that the run, the entry, the balance and the key's spend
 * change together or not at all.
 */
export interface CreditLedger {
  /** Throws if the key or the account does not exist. */
  accountState(run: Pick<NewRun, 'accountId' | 'keyId'>): AccountState
  charge(run: Pick<NewRun, 'id' | 'accountId' | 'keyId' | 'price'>, nowMs: number): void
  /** `run` is a row of the table `runs`. Returns the refunded credits. */
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
