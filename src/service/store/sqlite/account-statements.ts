/** The statements about accounts, keys and credits. */

export const KEY_COLUMNS = 'keys.*, accounts.name AS account, accounts.banned AS banned'

export const ACCOUNT_SQL = {
  addAccount: `
    INSERT INTO accounts (name, created_at) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING RETURNING id`,

  findAccount: `SELECT id, balance FROM accounts WHERE name = ?1`,

  // Grouped first: a subquery per account would read all runs once per account.
  listAccounts: `
    SELECT accounts.*, coalesce(keyed.keys, 0) AS keys, coalesce(made.runs, 0) AS runs
    FROM accounts
    LEFT JOIN (SELECT account_id, count(*) AS keys FROM keys GROUP BY account_id) AS keyed
      ON keyed.account_id = accounts.id
    LEFT JOIN (SELECT account_id, count(*) AS runs FROM runs GROUP BY account_id) AS made
      ON made.account_id = accounts.id
    ORDER BY accounts.id`,

  setBanned: `UPDATE accounts SET banned = ?2 WHERE name = ?1`,

  addKey: `
    INSERT INTO keys (account_id, name, hash, disabled, expires_at, spend_limit, quota, allowed_ips,
      rate_requests, rate_window_ms, created_at, prefix)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
    RETURNING id`,

  activeKeys: `SELECT count(*) AS active FROM keys WHERE account_id = ?1 AND disabled = 0`,

  anyKey: `SELECT id FROM keys LIMIT 1`,

  // Asked with every request, and libsql spends most of a read on its columns: only those that are needed.
  findKey: `
    SELECT keys.id, keys.account_id, keys.hash, keys.disabled, keys.expires_at, keys.allowed_ips,
      keys.rate_requests, keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.hash = ?1`,

  findRotatedKey: `
    SELECT keys.id, keys.account_id, keys.old_hash AS hash, keys.disabled, keys.expires_at, keys.allowed_ips,
      keys.rate_requests, keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.old_hash = ?1 AND keys.old_until > ?2`,

  listKeys: `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id ORDER BY keys.id`,

  findKeyById: `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.id = ?1`,

  changeKey: `
    UPDATE keys SET name = ?2, disabled = ?3, expires_at = ?4, spend_limit = ?5, quota = ?6, allowed_ips = ?7,
      rate_requests = ?8, rate_window_ms = ?9
    WHERE id = ?1`,

  rotateKey: `UPDATE keys SET old_hash = hash, old_until = ?4, hash = ?2, prefix = ?3 WHERE id = ?1`,

  recordKeyUse: `UPDATE keys SET last_used_at = ?2 WHERE id = ?1 AND coalesce(last_used_at < ?2, true)`,

  accountState: `
    SELECT keys.spent, keys.spend_limit, keys.used, keys.quota, keys.disabled, keys.expires_at, accounts.balance, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.id = ?1`,

  balance: `SELECT balance, banned FROM accounts WHERE id = ?1`,

  // Balances and spends repeat what the entries sum to, so that a create need not sum them up.
  moveBalance: `UPDATE accounts SET balance = balance + ?2 WHERE id = ?1`,

  moveSpend: `UPDATE keys SET spent = spent + ?2, used = used + ?3 WHERE id = ?1`,

  addEntry: `
    INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,

  listEntries: `
    SELECT credits.*, accounts.name AS account
    FROM credits JOIN accounts ON accounts.id = credits.account_id
    WHERE accounts.name = ?1 ORDER BY credits.sequence DESC LIMIT ?2`,

  totals: `
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM credits) AS entries,
      (SELECT count(*) FROM runs) AS runs, (SELECT coalesce(sum(balance), 0) FROM accounts) AS credits`,

  notRecorded: `
    SELECT runs.id, accounts.name AS account, price AS credits
    FROM runs JOIN accounts ON accounts.id = runs.account_id
    WHERE status = 'failed' AND error_code = 'not_recorded' ORDER BY runs.sequence`,
} as const

/** Each finds wrong sums, one sentence per row. */
export const CHECKS: readonly string[] = [
  `SELECT format('Account %s has a balance of %d, and its entries sum to %d.', name, balance, entries) AS problem
   FROM (
     SELECT name, balance,
       (SELECT coalesce(sum(amount), 0) FROM credits WHERE account_id = accounts.id) AS entries
     FROM accounts
   )
   WHERE balance <> entries`,

  `SELECT format('Account %s was %d below zero after entry %d.', name, -balance, sequence) AS problem
   FROM (
     SELECT accounts.name, credits.sequence, credits.amount,
       sum(amount) OVER (PARTITION BY account_id ORDER BY sequence) AS balance
     FROM credits JOIN accounts ON accounts.id = credits.account_id
   )
   WHERE balance < 0 AND amount < 0`,

  `SELECT format('Key %d has spent %d, and its entries sum to %d.', id, spent, entries) AS problem
   FROM (
     SELECT keys.id, spent, coalesce(-charged.amount, 0) AS entries
     FROM keys LEFT JOIN (SELECT key_id, sum(amount) AS amount FROM credits GROUP BY key_id) AS charged
       ON charged.key_id = keys.id
   )
   WHERE spent <> entries`,

  `SELECT format('Key %d was used %d times, and made %d runs.', id, used, made) AS problem
   FROM (
     SELECT keys.id, used, coalesce(made.runs, 0) AS made
     FROM keys LEFT JOIN (SELECT key_id, count(*) AS runs FROM runs GROUP BY key_id) AS made ON made.key_id = keys.id
   )
   WHERE used <> made`,

  `SELECT format('Run %s costs %d, and was charged %s.', runs.id, price, coalesce(-amount, 'nothing')) AS problem
   FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'charge'
   WHERE price <> coalesce(-amount, 0)
     OR (amount IS NOT NULL AND (credits.account_id <> runs.account_id OR credits.key_id IS NOT runs.key_id))`,

  `SELECT format('Run %s is %s, costs %d, and was given back %s.', runs.id, status, price,
     coalesce(amount, 'nothing')) AS problem
   FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
   WHERE coalesce(amount, 0) <> iif(status = 'failed' AND error_code IS NOT 'not_recorded', price, 0)
     OR (amount IS NOT NULL AND (credits.account_id <> runs.account_id OR credits.key_id IS NOT runs.key_id))`,
]
