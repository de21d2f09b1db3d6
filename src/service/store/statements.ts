/** SQL that several parts of the store share. */
import { OUTCOME_UNKNOWN } from '../../protocol/run-state.js'

/** Columns of a key, except its hashes. Not `*`, because libsql spends most of a read on columns. */
const KEY_COLUMNS = `keys.id, keys.account_id, keys.name, keys.prefix, keys.disabled, keys.expires_at, keys.spend_limit,
      keys.spent, keys.quota, keys.used, keys.allowed_ips, keys.rate_requests, keys.rate_window_ms, keys.created_at,
      keys.last_used_at, accounts.name AS account, accounts.banned AS banned`

export const KEYS = `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id`

export const ENTRY_COLUMNS = `credits.sequence, credits.kind, credits.amount, credits.run_id, credits.key_id, credits.created_at,
      accounts.name AS account`

/** Balances and spends duplicate the sums of the entries, so that a create does not have to compute them. */
export const MOVE_BALANCE = `UPDATE accounts SET balance = balance + $2 WHERE id = $1`

const WRONG_OWNER = `(amount IS NOT NULL
        AND (credits.account_id <> runs.account_id OR credits.key_id IS DISTINCT FROM runs.key_id))`

/** Whether the outcome of a run that has ended is unknown. `failure` is written by `JSON.stringify`, with its code first. */
const IS_UNKNOWN = `coalesce(failure, '') LIKE '{"code":"${OUTCOME_UNKNOWN}",%'`

/** Runs with an unknown outcome, without those that an operator has decided on. Oldest first. */
export const UNKNOWN_RUNS = `
    SELECT runs.id FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
    WHERE status IN ('failed', 'canceled') AND ${IS_UNKNOWN} AND amount IS NULL ORDER BY runs.sequence`

/** `verificationOf` expects the totals first. Every other statement returns one sentence per wrong sum. */
export const LEDGER: Readonly<Record<string, string>> = {
  totals: `
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM credits) AS entries,
      (SELECT count(*) FROM runs) AS runs, CAST((SELECT coalesce(sum(balance), 0) FROM accounts) AS bigint) AS credits`,

  balances: `
    SELECT format('Account %s has a balance of %s, and its entries sum to %s.', name, balance, entries) AS problem
    FROM (
      SELECT name, balance, coalesce(summed.amount, 0) AS entries
      FROM accounts LEFT JOIN (SELECT account_id, sum(amount) AS amount FROM credits GROUP BY account_id) AS summed
        ON summed.account_id = accounts.id
    ) AS sums
    WHERE balance <> entries`,

  spends: `
    SELECT format('Key %s has spent %s, and its entries sum to %s.', id, spent, entries) AS problem
    FROM (
      SELECT keys.id, spent, coalesce(-charged.amount, 0) AS entries
      FROM keys LEFT JOIN (SELECT key_id, sum(amount) AS amount FROM credits GROUP BY key_id) AS charged
        ON charged.key_id = keys.id
    ) AS sums
    WHERE spent <> entries`,

  charges: `
    SELECT format('Run %s costs %s, and was charged %s.', runs.id, price,
      coalesce(CAST(-amount AS text), 'nothing')) AS problem
    FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'charge'
    WHERE price <> coalesce(-amount, 0) OR ${WRONG_OWNER}`,

  refunds: `
    SELECT format('Run %s is %s, costs %s, and was given back %s.', runs.id, status, price,
      coalesce(CAST(amount AS text), 'nothing')) AS problem
    FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
    WHERE CASE
        WHEN status = 'failed' AND ${IS_UNKNOWN} THEN coalesce(amount, price) <> price
        WHEN status = 'failed' OR status = 'canceled' AND started_at IS NULL AND coalesce(job, '{}') = '{}'
          THEN coalesce(amount, 0) <> price
        WHEN status = 'canceled' AND NOT stopping THEN coalesce(amount, price) <> price
        ELSE amount IS NOT NULL
      END
      OR ${WRONG_OWNER}`,
}
