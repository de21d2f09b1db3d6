/** Adds runs. */
import type { AccountState } from '../../rules/key-checks.js'
import type { AddedRun, FileName, NewRun } from '../contract.js'
import { accountStateOfRow, keylessStateOf, newRunColumns } from '../rows.js'
import type { PostgresDatabase, Transaction } from './database.js'
import { statementsOf } from './driver.js'

const COLUMNS = [
  ...['id', 'account_id', 'key_id', 'model', 'kind', 'prompt', 'aspect_ratio', 'price', 'created_at'],
  'input',
]

const SQL = statementsOf({
  // Locks the account and then its key, until the run is charged.
  accountState: `
    SELECT keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance,
      accounts.banned
    FROM accounts JOIN keys ON keys.account_id = accounts.id
    WHERE accounts.id = $1 AND keys.id = $2
    FOR NO KEY UPDATE OF accounts, keys`,

  // Locks the account of a run without a key.
  balance: `SELECT balance, banned FROM accounts WHERE id = $1 FOR NO KEY UPDATE`,

  existing: `SELECT id FROM runs WHERE id = $1`,

  createdBefore: `
    SELECT run_id, request FROM idempotency_keys WHERE account_id = $1 AND key = $2 AND expires_at > $3`,

  removeExpiredKeys: `DELETE FROM idempotency_keys WHERE account_id = $1 AND expires_at <= $2`,

  addIdempotencyKey: `
    INSERT INTO idempotency_keys (account_id, key, request, run_id, expires_at) VALUES ($1, $2, $3, $4, $5)`,

  // Locks the files until the commit, so that no sweep marks them. Always in the same order, so that creates with the
  // same images do not deadlock.
  liveFiles: `
    SELECT kind, key FROM files
    WHERE (kind, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))
      AND (state = 'stored' OR kind = 'input' AND state = 'writing')
    ORDER BY kind, key FOR NO KEY UPDATE`,

  recordImages: `
    UPDATE files SET state = 'stored' WHERE kind = 'input' AND key = ANY ($1::text[]) AND state = 'writing'`,

  addRunFiles: `
    INSERT INTO run_files (run_id, kind, key) SELECT $1, * FROM unnest($2::text[], $3::text[])
    ON CONFLICT DO NOTHING`,

  addRun: `
    INSERT INTO runs (${COLUMNS.join(', ')}, status)
    VALUES (${COLUMNS.map((_, at) => `$${at + 1}`).join(', ')}, 'queued')`,

  moveBalance: `UPDATE accounts SET balance = balance - $2::bigint WHERE id = $1`,

  moveSpend: `UPDATE keys SET spent = spent + $2::bigint, used = used + 1 WHERE id = $1`,

  charge: `
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
    VALUES ($1, 'charge', -$2::bigint, $3, $4, $5)`,
})

/** Creates the function `addRun` of the contract. */
export const createRunAdder =
  ({ transaction }: Pick<PostgresDatabase, 'transaction'>) =>
  (run: NewRun, check: (account: AccountState) => void): Promise<AddedRun> =>
    transaction(
      async (tx) => {
        const { id, accountId, keyId, price, files = [] } = run
        // Sends the statements at once. The first one locks the account, so a commit in progress has ended before the
        // others look for its runs.
        const [state, existing, before, live] = await Promise.all([
          keyId === undefined ? tx.get(SQL.balance, accountId) : tx.get(SQL.accountState, accountId, keyId),
          tx.mayHaveCommitted ? tx.get(SQL.existing, id) : undefined,
          findCreatedBefore(tx, run),
          findLive(tx, files),
        ])
        if (existing !== undefined) return { id }
        if (before !== undefined) return before
        if (files.some((file) => file.kind === 'input' && !live.includes(nameOf(file))))
          return { refused: 'file_removed' }
        if (state === undefined)
          throw new Error(
            keyId === undefined ? `Account ${accountId} does not exist.` : `Key ${keyId} does not exist.`,
          )
        if (keyId !== undefined) check(accountStateOfRow(state))
        else if (price > 0) check(keylessStateOf(state))
        const columns = { ...newRunColumns(run), input: JSON.stringify(run.input) }
        await Promise.all([
          addRunFiles(tx, run, live),
          tx.run(SQL.addRun, ...Object.values(columns)),
          keyId !== undefined && tx.run(SQL.moveSpend, keyId, price),
          price > 0 && tx.run(SQL.moveBalance, accountId, price),
          price > 0 && tx.run(SQL.charge, accountId, price, id, keyId ?? null, run.createdAtMs),
          addIdempotencyKey(tx, run),
        ])
        return { id }
      },
      { repeatable: true },
    )

const nameOf = ({ kind, key }: FileName): string => `${kind} ${key}`

/** Returns the result of an earlier create with the same idempotency key. */
async function findCreatedBefore(
  tx: Transaction,
  { accountId, idempotency, createdAtMs }: NewRun,
): Promise<AddedRun | undefined> {
  if (idempotency === undefined) return undefined
  const row = await tx.get(SQL.createdBefore, accountId, idempotency.key, createdAtMs)
  if (row === undefined) return undefined
  return row.request === idempotency.request ? { id: String(row.run_id) } : { refused: 'key_reused' }
}

async function addIdempotencyKey(
  tx: Transaction,
  { id, accountId, idempotency, createdAtMs }: NewRun,
): Promise<void> {
  if (idempotency === undefined) return
  const { key, request, expiresAtMs } = idempotency
  await Promise.all([
    tx.run(SQL.removeExpiredKeys, accountId, createdAtMs),
    tx.run(SQL.addIdempotencyKey, accountId, key, request, id, expiresAtMs),
  ])
}

/** Returns the names of those files that are not being removed. */
async function findLive(tx: Transaction, files: readonly FileName[]): Promise<readonly string[]> {
  if (files.length === 0) return []
  const rows = await tx.all(
    SQL.liveFiles,
    files.map(({ kind }) => kind),
    files.map(({ key }) => key),
  )
  return rows.map(({ kind, key }) => `${kind} ${key}`)
}

async function addRunFiles(
  tx: Transaction,
  { id, files = [] }: NewRun,
  live: readonly string[],
): Promise<void> {
  const needed = files.filter((file) => live.includes(nameOf(file)))
  if (needed.length === 0) return
  const keys = needed.map(({ key }) => key)
  await Promise.all([
    tx.run(SQL.recordImages, keys),
    tx.run(
      SQL.addRunFiles,
      id,
      needed.map(({ kind }) => kind),
      keys,
    ),
  ])
}
