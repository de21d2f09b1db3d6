/** Recomputes the sums of the ledger. */
import { OUTCOME_UNKNOWN } from '../../protocol/run-state.js'
import type { Row } from './sql.js'

export interface Verification {
  readonly accounts: number
  readonly entries: number
  readonly runs: number
  /** Sum of all balances. */
  readonly credits: number
  /** One sentence per wrong sum. */
  readonly problems: readonly string[]
}

export interface Verified extends Verification {
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

export const findUnknown = async (read: Read): Promise<readonly string[]> =>
  (await read(UNKNOWN_RUNS)).map(({ id }) => String(id))
