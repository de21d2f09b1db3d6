/** The statements about accounts, keys and credits. */
import { type Statement, statementsOf } from './driver.js'

/** How the failure of such a run begins: text, since PostgreSQL's own JSON refuses some messages. `_` fits any character. */
const NOT_RECORDED = '{"code":"not_recorded",%'

/**
 * Columns are named: a prepared statement with `*` fails on every connection once a newer version has added a column. Without the
 * hashes.
 */
export const KEY_COLUMNS = `keys.id, keys.account_id, keys.name, keys.prefix, keys.disabled, keys.expires_at, keys.spend_limit,
      keys.spent, keys.quota, keys.used, keys.allowed_ips, keys.rate_requests, keys.rate_window_ms, keys.created_at,
      keys.last_used_at, keys.old_until, accounts.name AS account, accounts.banned AS banned`

export const ENTRY_COLUMNS = `credits.sequence, credits.kind, credits.amount, credits.run_id, credits.key_id, credits.created_at,
      accounts.name AS account`

export const ACCOUNT_SQL = statementsOf({
  addAccount: `
    INSERT INTO accounts (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id`,

  findAccount: `SELECT id, balance FROM accounts WHERE name = $1`,

  lockAccount: `SELECT id, balance FROM accounts WHERE name = $1 FOR NO KEY UPDATE`,

  // Grouped first: a subquery per account would read all runs once per account.
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

  // Keys of one account are counted and added, or enabled, one after the other.
  lockAccountOfKeys: `SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE`,

  lockAccountOfKey: `
    SELECT accounts.id FROM accounts JOIN keys ON keys.account_id = accounts.id WHERE keys.id = $1
    FOR NO KEY UPDATE OF accounts`,

  activeKeys: `SELECT count(*) AS active FROM keys WHERE account_id = $1 AND NOT disabled`,

  lockKeys: `LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE`,

  addKey: `
    INSERT INTO keys (account_id, name, hash, disabled, expires_at, spend_limit, quota, allowed_ips,
      rate_requests, rate_window_ms, created_at, prefix)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text[], $9, $10, $11, $12)
    RETURNING id`,

  anyKey: `SELECT id FROM keys LIMIT 1`,

  // Asked with every request: only the columns that are needed.
  findKey: `
    SELECT keys.id, keys.account_id, keys.hash, keys.disabled, keys.expires_at, keys.allowed_ips,
      keys.rate_requests, keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.hash = $1`,

  findRotatedKey: `
    SELECT keys.id, keys.account_id, keys.old_hash AS hash, keys.disabled, keys.expires_at, keys.allowed_ips,
      keys.rate_requests, keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.old_hash = $1 AND keys.old_until > $2`,

  listKeys: `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id ORDER BY keys.id`,

  lockKey: `
    SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.id = $1
    FOR NO KEY UPDATE OF keys`,

  changeKey: `
    UPDATE keys SET name = $2, disabled = $3, expires_at = $4, spend_limit = $5, quota = $6, allowed_ips = $7::text[],
      rate_requests = $8, rate_window_ms = $9
    WHERE id = $1`,

  // Done twice, it keeps the secret that was there before the first.
  rotateKey: `
    UPDATE keys SET hash = $2, prefix = $3,
      old_hash = CASE WHEN hash = $2 THEN old_hash ELSE hash END, old_until = $4
    WHERE id = $1`,

  recordKeyUse: `UPDATE keys SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at < $2, true)`,

  // The balance repeats what the entries sum to, so that a create need not sum them up.
  addCredits: `
    WITH moved AS (UPDATE accounts SET balance = balance + $2::bigint WHERE id = $1)
    INSERT INTO credits (account_id, kind, amount, created_at) VALUES ($1, 'added', $2::bigint, $3)`,

  listEntries: `
    SELECT ${ENTRY_COLUMNS}
    FROM credits JOIN accounts ON accounts.id = credits.account_id
    WHERE accounts.name = $1 ORDER BY credits.sequence DESC
    LIMIT CASE WHEN $2::bigint < 0 THEN NULL ELSE $2::bigint END`,

  totals: `
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM credits) AS entries,
      (SELECT count(*) FROM runs) AS runs, (SELECT coalesce(sum(balance), 0) FROM accounts)::bigint AS credits`,

  notRecorded: `
    SELECT runs.id, accounts.name AS account, price AS credits
    FROM runs JOIN accounts ON accounts.id = runs.account_id
    WHERE status = 'failed' AND failure LIKE '${NOT_RECORDED}' ORDER BY runs.sequence`,
})

/** Each finds wrong sums, one sentence per row. */
const CHECKS = statementsOf({
  balances: `
    SELECT format('Account %s has a balance of %s, and its entries sum to %s.', name, balance, entries) AS problem
    FROM (
      SELECT name, balance, coalesce(summed.amount, 0) AS entries
      FROM accounts LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM credits GROUP BY account_id) AS summed
        ON summed.account_id = accounts.id
    ) AS sums
    WHERE balance <> entries`,

  overdrafts: `
    SELECT format('Account %s was %s below zero after entry %s.', name, -balance, sequence) AS problem
    FROM (
      SELECT accounts.name, credits.sequence, credits.amount,
        sum(amount) OVER (PARTITION BY account_id ORDER BY sequence) AS balance
      FROM credits JOIN accounts ON accounts.id = credits.account_id
    ) AS balances
    WHERE balance < 0 AND amount < 0`,

  spends: `
    SELECT format('Key %s has spent %s, and its entries sum to %s.', id, spent, entries) AS problem
    FROM (
      SELECT keys.id, spent, coalesce(-charged.amount, 0) AS entries
      FROM keys LEFT JOIN (SELECT key_id, sum(amount) AS amount FROM credits GROUP BY key_id) AS charged
        ON charged.key_id = keys.id
    ) AS sums
    WHERE spent <> entries`,

  uses: `
    SELECT format('Key %s was used %s times, and made %s runs.', id, used, made) AS problem
    FROM (
      SELECT keys.id, used, coalesce(made.runs, 0) AS made
      FROM keys LEFT JOIN (SELECT key_id, count(*) AS runs FROM runs GROUP BY key_id) AS made ON made.key_id = keys.id
    ) AS counts
    WHERE used <> made`,

  charges: `
    SELECT format('Run %s costs %s, and was charged %s.', runs.id, price, coalesce((-amount)::text, 'nothing')) AS problem
    FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'charge'
    WHERE price <> coalesce(-amount, 0)
      OR (amount IS NOT NULL
        AND (credits.account_id <> runs.account_id OR credits.key_id IS DISTINCT FROM runs.key_id))`,

  refunds: `
    SELECT format('Run %s is %s, costs %s, and was given back %s.', runs.id, status, price,
      coalesce(amount::text, 'nothing')) AS problem
    FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
    WHERE coalesce(amount, 0) <> CASE WHEN status = 'failed' AND coalesce(failure, '') NOT LIKE '${NOT_RECORDED}' THEN price ELSE 0 END
      OR (amount IS NOT NULL
        AND (credits.account_id <> runs.account_id OR credits.key_id IS DISTINCT FROM runs.key_id))`,

  queues: `
    SELECT format('Account %s has %s queued runs that no worker finds.', name, queued) AS problem
    FROM (
      SELECT account_id, count(*) AS queued FROM runs WHERE status = 'queued' GROUP BY account_id
    ) AS queues JOIN accounts ON accounts.id = account_id LEFT JOIN turns USING (account_id)
    WHERE queued_since IS NULL`,
})

export const LEDGER_STATEMENTS: readonly Statement[] = [
  ACCOUNT_SQL.totals,
  ACCOUNT_SQL.notRecorded,
  ...Object.values(CHECKS),
]
