/**
 * Accounts and credits. Credits are whole numbers. Every change of a balance adds an entry to an append-only ledger in
 * the same transaction, so that an account's entries always sum to its balance; a verification recomputes the sums.
 */
import { OUTCOME_UNKNOWN } from '../../protocol/run-state.js'
import { recordOf } from './rows.js'
import { type Database, insert, type Queries, type Row, type Transaction, type Values } from './sql.js'

interface NewAccount {
  readonly name: string
  readonly credits: number
  readonly nowMs: number
}

export interface AccountRecord {
  readonly id: number
  readonly name: string
  readonly balance: number
  readonly banned: boolean
  readonly keys: number
  /** Number of runs that the account has created. */
  readonly runs: number
  readonly createdAtMs: number
}

export type LedgerEntryKind = 'added' | 'charge' | 'refund'

/** A change of an account's balance. */
export interface LedgerEntry {
  readonly sequence: number
  readonly account: string
  readonly kind: LedgerEntryKind
  /** In credits. Negative for a charge and for removed credits. */
  readonly amount: number
  readonly runId: string | undefined
  readonly keyId: number | undefined
  readonly createdAtMs: number
}

interface NewCredits {
  readonly account: string
  /** In credits. Negative to remove credits. */
  readonly amount: number
  readonly nowMs: number
}

export const ENTRY_COLUMNS = `credits.sequence, credits.kind, credits.amount, credits.run_id, credits.key_id, credits.created_at,
      accounts.name AS account`

/** Balances and spends duplicate the sums of the entries, so that a create does not have to compute them. */
export async function moveBalance(
  tx: Transaction,
  accountId: number,
  entry: { readonly kind: LedgerEntryKind; readonly amount: number } & Values,
): Promise<void> {
  const { amount } = entry
  await Promise.all([
    tx.run('UPDATE accounts SET balance = balance + :amount WHERE id = :accountId', { amount, accountId }),
    tx.run(...insert('credits', { account_id: accountId, ...entry })),
  ])
}

/** Both counts read an index alone. */
const ACCOUNTS = `
    SELECT id, name, balance, banned, created_at,
      (SELECT count(*) FROM keys WHERE account_id = accounts.id) AS keys,
      (SELECT count(*) FROM runs WHERE account_id = accounts.id) AS runs
    FROM accounts`

export function createAccountStore({ transaction, repeatable, snapshot, run }: Database) {
  const idOf = async (from: Queries, name: string) =>
    (await from.get('SELECT id FROM accounts WHERE name = :name', { name }))?.id as number | undefined

  /** Returns undefined if the name is taken. */
  async function insertAccount(tx: Transaction, { name, credits, nowMs }: NewAccount) {
    const after = 'ON CONFLICT (name) DO NOTHING RETURNING id'
    const row = await tx.get(...insert('accounts', { name, created_at: nowMs }, after))
    const id = row?.id as number | undefined
    if (id !== undefined && credits !== 0)
      await moveBalance(tx, id, { kind: 'added', amount: credits, created_at: nowMs })
    return id
  }

  return {
    /** Returns the id of the account with this name. Creates the account if it does not exist. */
    ensureAccount: (account: NewAccount): Promise<number> =>
      repeatable(
        async (tx) =>
          // Looks first: on PostgreSQL, an INSERT that adds nothing uses up an id.
          (await idOf(tx, account.name)) ??
          (await insertAccount(tx, account)) ??
          Number(await idOf(tx, account.name)),
      ),
    /** Returns undefined if the name is taken. */
    async addAccount(account: NewAccount): Promise<AccountRecord | undefined> {
      const id = await transaction((tx) => insertAccount(tx, account))
      const { name, credits: balance, nowMs: createdAtMs } = account
      return id === undefined
        ? undefined
        : { id, name, balance, banned: false, keys: 0, runs: 0, createdAtMs }
    },
    async listAccounts() {
      return (await snapshot((read) => read.all(`${ACCOUNTS} ORDER BY id`))).map((row) =>
        recordOf<AccountRecord>(row),
      )
    },
    async findAccountByName(name: string): Promise<AccountRecord | undefined> {
      const row = await snapshot((read) => read.get(`${ACCOUNTS} WHERE name = :name`, { name }))
      return row && recordOf(row)
    },
    /** Returns false if the account does not exist. */
    setBanned: async (name: string, banned: boolean): Promise<boolean> =>
      (await run('UPDATE accounts SET banned = :banned WHERE name = :name', { name, banned })) > 0,

    /**
     * Returns the new balance, or undefined if the account does not exist. `check` receives the new balance before the
     * change, and throws to refuse it.
     */
    addCredits: (
      { account, amount, nowMs }: NewCredits,
      check: (balance: number) => void,
    ): Promise<number | undefined> =>
      transaction(async (tx) => {
        const find = 'SELECT id, balance FROM accounts WHERE name = :account {lock}'
        const row = await tx.get(find, { account })
        if (row === undefined) return undefined
        const balance = Number(row.balance) + amount
        check(balance)
        await moveBalance(tx, Number(row.id), { kind: 'added', amount, created_at: nowMs })
        return balance
      }),
    /** Recomputes all sums from one snapshot of the database. */
    verify: (): Promise<Verified> =>
      snapshot(async ({ all }) => ({ ...(await verifyLedger(all)), unknown: await findUnknown(all) })),
  }
}

export interface Verification {
  readonly accounts: number
  readonly entries: number
  readonly runs: number
  /** Sum of all balances. */
  readonly credits: number
  /** One sentence per wrong sum. */
  readonly problems: readonly string[]
}

interface Verified extends Verification {
  /** Ids of failed runs with an unknown outcome, without the runs that an operator has decided on. */
  readonly unknown: readonly string[]
}

const WRONG_OWNER = `(amount IS NOT NULL
        AND (credits.account_id <> runs.account_id OR credits.key_id IS DISTINCT FROM runs.key_id))`

/** Whether the outcome of a run that has ended is unknown. `failure` is written by `JSON.stringify`, with its code first. */
const IS_UNKNOWN = `coalesce(failure, '') LIKE '{"code":"${OUTCOME_UNKNOWN}",%'`

/** Runs with an unknown outcome, without those that an operator has decided on. Oldest first. */
const UNKNOWN_RUNS = `
    SELECT runs.id FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
    WHERE status IN ('failed', 'canceled') AND ${IS_UNKNOWN} AND amount IS NULL ORDER BY runs.sequence`

const TOTALS = `
  SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM credits) AS entries,
    (SELECT count(*) FROM runs) AS runs, CAST((SELECT coalesce(sum(balance), 0) FROM accounts) AS bigint) AS credits`

/** One sentence per wrong sum: of the balances, the spends of keys, the charges and the refunds. */
const PROBLEMS = `
  SELECT format('Account %s has a balance of %s, and its entries sum to %s.', name, balance, entries) AS problem
  FROM (
    SELECT name, balance, coalesce(summed.amount, 0) AS entries
    FROM accounts LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM credits GROUP BY account_id) AS summed
      ON summed.account_id = accounts.id
  ) AS sums
  WHERE balance <> entries
  UNION ALL
  SELECT format('Key %s has spent %s, and its entries sum to %s.', id, spent, entries)
  FROM (
    SELECT keys.id, spent, coalesce(-charged.amount, 0) AS entries
    FROM keys LEFT JOIN (SELECT key_id, sum(amount) AS amount FROM credits GROUP BY key_id) AS charged
      ON charged.key_id = keys.id
  ) AS spends
  WHERE spent <> entries
  UNION ALL
  SELECT format('Run %s costs %s, and was charged %s.', runs.id, price, coalesce(CAST(-amount AS text), 'nothing'))
  FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'charge'
  WHERE price <> coalesce(-amount, 0) OR ${WRONG_OWNER}
  UNION ALL
  SELECT format('Run %s is %s, costs %s, and was given back %s.', runs.id, status, price,
    coalesce(CAST(amount AS text), 'nothing'))
  FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
  WHERE CASE
      WHEN status = 'failed' AND ${IS_UNKNOWN} THEN coalesce(amount, price) <> price
      WHEN status = 'failed' OR status = 'canceled' AND started_at IS NULL AND coalesce(job, '{}') = '{}'
        THEN coalesce(amount, 0) <> price
      WHEN status = 'canceled' AND NOT stopping THEN coalesce(amount, price) <> price
      ELSE amount IS NOT NULL
    END
    OR ${WRONG_OWNER}`

type Read = (sql: string) => Promise<readonly Row[]> | readonly Row[]

export async function verifyLedger(read: Read): Promise<Verification> {
  const [totals] = await read(TOTALS)
  return {
    accounts: Number(totals?.accounts),
    entries: Number(totals?.entries),
    runs: Number(totals?.runs),
    credits: Number(totals?.credits),
    problems: (await read(PROBLEMS)).map(({ problem }) => String(problem)),
  }
}

const findUnknown = async (read: Read): Promise<readonly string[]> =>
  (await read(UNKNOWN_RUNS)).map(({ id }) => String(id))
