/**
 * SQL that both databases share. It uses PostgreSQL's parameters (`$1`), which `sqliteTexts` rewrites. Statements that
 * must differ are in the folders `sqlite` and `postgres`.
 */
import type { EntryFilter, FoundRuns, ListedRun, RunFilter } from './console-store.js'

/** Replaces `$1` with `?1`. SQLite reads `$1` as a name, and numbers names in the order of their first use. */
export const sqliteText = (text: string): string => text.replace(/\$(?=\d)/g, '?')

export const sqliteTexts = <Texts extends Readonly<Record<string, string>>>(texts: Texts): Texts =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, sqliteText(text)])) as Texts

/** Columns of a key, except its hashes. Not `*`, because libsql spends most of a read on columns. */
const KEY_COLUMNS = `keys.id, keys.account_id, keys.name, keys.prefix, keys.disabled, keys.expires_at, keys.spend_limit,
      keys.spent, keys.quota, keys.used, keys.allowed_ips, keys.rate_requests, keys.rate_window_ms, keys.created_at,
      keys.last_used_at, keys.old_until, keys.archived_at, accounts.name AS account, accounts.banned AS banned`

export const KEYS = `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id`

export const ENTRY_COLUMNS = `credits.sequence, credits.kind, credits.amount, credits.run_id, credits.key_id, credits.created_at,
      accounts.name AS account`

/** Only the columns that the key check needs, because every request reads them. */
const CALLER_COLUMNS = `keys.disabled, keys.expires_at, keys.allowed_ips, keys.rate_requests, keys.rate_window_ms, accounts.banned
    FROM keys JOIN accounts ON accounts.id = keys.account_id`

export const ACCOUNTS = {
  addAccount: `
    INSERT INTO accounts (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id`,

  findAccount: `SELECT id, balance FROM accounts WHERE name = $1`,

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

  findKey: `SELECT keys.id, keys.account_id, keys.hash, ${CALLER_COLUMNS} WHERE keys.hash = $1`,

  findRotatedKey: `
    SELECT keys.id, keys.account_id, keys.old_hash AS hash, ${CALLER_COLUMNS}
    WHERE keys.old_hash = $1 AND keys.old_until > $2`,

  listKeys: `${KEYS} ORDER BY keys.id`,

  changeKey: `
    UPDATE keys SET name = $2, disabled = $3, expires_at = $4, spend_limit = $5, quota = $6, allowed_ips = $7,
      rate_requests = $8, rate_window_ms = $9
    WHERE id = $1`,

  // Idempotent: a repeat with the same hash keeps the old secret from before the first call.
  rotateKey: `
    UPDATE keys SET hash = $2, prefix = $3,
      old_hash = CASE WHEN hash = $2 THEN old_hash ELSE hash END, old_until = $4
    WHERE id = $1 AND archived_at IS NULL`,

  archiveKey: `UPDATE keys SET archived_at = $2, disabled = true WHERE id = $1 AND archived_at IS NULL`,

  recordKeyUse: `UPDATE keys SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at < $2, true)`,
} as const

const WRONG_OWNER = `(amount IS NOT NULL
        AND (credits.account_id <> runs.account_id OR credits.key_id IS DISTINCT FROM runs.key_id))`

/**
 * Condition for a run whose result was not recorded. A pattern for text, because PostgreSQL's JSON types reject some
 * messages. `_` matches any character.
 */
const IS_NOT_RECORDED = `failure LIKE '{"code":"not_recorded",%'`

/**
 * Order matters: `verificationOf` expects the totals first, then the failed runs without a recorded result. Every other
 * statement returns one sentence per wrong sum.
 */
export const LEDGER: Readonly<Record<string, string>> = {
  totals: `
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM credits) AS entries,
      (SELECT count(*) FROM runs) AS runs, CAST((SELECT coalesce(sum(balance), 0) FROM accounts) AS bigint) AS credits`,

  notRecorded: `
    SELECT runs.id, accounts.name AS account, price AS credits
    FROM runs JOIN accounts ON accounts.id = runs.account_id
    WHERE status = 'failed' AND ${IS_NOT_RECORDED} ORDER BY runs.sequence`,

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
    SELECT format('Run %s costs %s, and was charged %s.', runs.id, price,
      coalesce(CAST(-amount AS text), 'nothing')) AS problem
    FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'charge'
    WHERE price <> coalesce(-amount, 0) OR ${WRONG_OWNER}`,

  refunds: `
    SELECT format('Run %s is %s, costs %s, and was given back %s.', runs.id, status, price,
      coalesce(CAST(amount AS text), 'nothing')) AS problem
    FROM runs LEFT JOIN credits ON run_id = runs.id AND credits.kind = 'refund'
    WHERE coalesce(amount, 0) <> CASE WHEN status = 'failed' AND NOT coalesce(${IS_NOT_RECORDED}, false) THEN price ELSE 0 END
      OR ${WRONG_OWNER}`,
}

/** Columns of a user and its account, with names that differ from the columns of the joined table. */
export const USER_COLUMNS = `users.id AS user_id, users.email, users.account_id, users.password,
      users.created_at AS user_created_at, accounts.name AS account, accounts.banned`

export const USERS = 'users JOIN accounts ON accounts.id = users.account_id'

const SESSIONS = `
    SELECT sessions.id, sessions.hash, sessions.from_link, sessions.address, sessions.user_agent, sessions.created_at,
      sessions.used_at, sessions.expires_at, ${USER_COLUMNS}
    FROM sessions JOIN users ON users.id = sessions.user_id JOIN accounts ON accounts.id = users.account_id`

export const CONSOLE = {
  addUser: `
    INSERT INTO users (email, account_id, created_at) VALUES ($1, $2, $3) ON CONFLICT (email) DO NOTHING RETURNING id`,

  findUser: `SELECT ${USER_COLUMNS} FROM ${USERS} WHERE users.email = $1`,

  listUsers: `
    SELECT ${USER_COLUMNS}, users.last_seen_at, coalesce(signed_in.sessions, 0) AS sessions
    FROM ${USERS}
    LEFT JOIN (SELECT user_id, count(*) AS sessions FROM sessions WHERE expires_at > $1 GROUP BY user_id) AS signed_in
      ON signed_in.user_id = users.id
    ORDER BY users.id`,

  removeUser: `DELETE FROM users WHERE email = $1`,

  findSession: `${SESSIONS} WHERE sessions.hash = $1 AND sessions.expires_at > $2`,

  endSession: `DELETE FROM sessions WHERE hash = $1`,

  endSessionById: `DELETE FROM sessions WHERE user_id = $1 AND id = $2`,

  listSessions: `
    ${SESSIONS} WHERE sessions.user_id = $1 AND sessions.expires_at > $2
    ORDER BY sessions.used_at DESC, sessions.id DESC LIMIT 100`,

  findAccountById: `SELECT name, balance, banned FROM accounts WHERE id = $1`,

  latestRun: `SELECT coalesce(max(sequence), 0) AS latest FROM runs WHERE account_id = $1`,

  listLostAttempts: `SELECT started_at, ended_at, result FROM lost_attempts WHERE run_id = $1 ORDER BY id`,

  // With the condition of the index keys_listed, so that a page does not read the archived keys that it skips.
  listAccountKeys: `
    ${KEYS} WHERE keys.account_id = $1 AND keys.id < $2 AND keys.archived_at IS NULL ORDER BY keys.id DESC LIMIT $3`,

  listAllAccountKeys: `${KEYS} WHERE keys.account_id = $1 AND keys.id < $2 ORDER BY keys.id DESC LIMIT $3`,

  findAccountKey: `${KEYS} WHERE keys.id = $1 AND keys.account_id = $2`,
} as const

/**
 * Each statement repeats the condition of its partial index word for word. Otherwise SQLite's planner does not use the
 * index.
 */
export const FILES = {
  liveImage: `
    SELECT key, used_at FROM files
    WHERE kind = 'input' AND sha256 = $1 AND state IN ('writing', 'stored')`,

  markOrphans: `
    UPDATE files SET state = 'removing', used_at = $2
    WHERE state <> 'stored' AND state = 'writing' AND (
      kind = 'input' AND used_at < $1
      OR kind = 'output' AND NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.id = files.run_id AND runs.owner = files.owner AND status = 'processing'
      )
    )`,

  listMarked: `
    SELECT kind, key FROM files
    WHERE state <> 'stored' AND state = 'removing' AND (kind, key) > ($2, $3) ORDER BY kind, key LIMIT $1`,

  recordRemoved: `
    UPDATE files SET state = 'removed', used_at = $3 WHERE kind = $1 AND key = $2 AND state = 'removing'`,

  forgetRemoved: `DELETE FROM files WHERE state <> 'stored' AND state = 'removed' AND used_at < $1`,
} as const

export const RUNS = {
  findOutput: `SELECT token, name, content_type, bytes, sha256 FROM outputs WHERE token = $1 AND name = $2`,

  // Scans the index runs_queue once, which contains the kind: 10–17 ms for 100,000 queued runs. GROUP BY would sort,
  // and take three times as long.
  queueLengths: `
    SELECT count(*) FILTER (WHERE kind = 'video') AS video, count(*) FILTER (WHERE kind = 'image') AS image
    FROM runs WHERE status = 'queued'`,

  removeExpiredWorker: `DELETE FROM workers WHERE id = $1 AND heartbeat_at = $2`,

  removeWorker: `DELETE FROM workers WHERE id = $1`,
} as const

/** A WHERE condition of a console list. `?` in `sql` is the placeholder for `value`. */
export interface Condition {
  readonly sql: string
  readonly value?: string | number
}

const conditionIfSet = (sql: string, value: string | number | undefined): readonly Condition[] =>
  value === undefined ? [] : [{ sql, value }]

/** Maximum number of runs that one page scans. A search reads their prompts; other filters read only an index. */
const MAX_SEARCHED = 2_000
const MAX_FILTERED = 50_000

/**
 * Returns the maximum number of runs to scan. Undefined without a filter, because the list then reads only the runs
 * that it shows.
 */
export function maxLookedAt({ status, kind, model, key, search }: RunFilter): number | undefined {
  if (search !== undefined) return MAX_SEARCHED
  return [status, kind, model, key].every((each) => each === undefined) ? undefined : MAX_FILTERED
}

/** `floor`: sequence of the newest run that this page does not scan. Undefined if the page scans all older runs. */
export function foundRuns(found: readonly ListedRun[], limit: number, floor: number | undefined): FoundRuns {
  const runs = found.slice(0, limit)
  if (found.length > limit) return { runs, next: runs.at(-1)?.sequence }
  return { runs, next: floor === undefined ? undefined : floor + 1 }
}

/** Conditions for the runs to scan: account and sequence. */
export const rangeConditions = (filter: RunFilter): readonly Condition[] => [
  { sql: 'runs.account_id = ?', value: filter.accountId },
  ...conditionIfSet('runs.sequence < ?', filter.before),
  ...conditionIfSet('runs.sequence > ?', filter.after),
]

/** All conditions except the search, which each database writes differently. */
export const runConditions = (filter: RunFilter, floor: number | undefined): readonly Condition[] => [
  ...rangeConditions(filter),
  ...conditionIfSet('runs.sequence > ?', floor),
  ...conditionIfSet('runs.status = ?', filter.status),
  ...conditionIfSet('runs.kind = ?', filter.kind),
  ...conditionIfSet('runs.model = ?', filter.model),
  ...(filter.key === 'console'
    ? [{ sql: 'runs.key_id IS NULL' }]
    : conditionIfSet('runs.key_id = ?', filter.key)),
]

export const entryConditions = (filter: EntryFilter): readonly Condition[] => [
  { sql: 'credits.account_id = ?', value: filter.accountId },
  ...conditionIfSet('credits.sequence < ?', filter.before),
  ...conditionIfSet('credits.kind = ?', filter.kind),
  ...conditionIfSet('credits.key_id = ?', filter.keyId),
  ...conditionIfSet('credits.created_at >= ?', filter.fromMs),
  ...conditionIfSet('credits.created_at < ?', filter.untilMs),
]

export interface Where {
  /** SQL with numbered parameters. */
  readonly sql: string
  readonly values: readonly (string | number)[]
  /** The next free parameter, for example `$3`. */
  readonly next: string
}

export function whereOf(conditions: readonly Condition[], sign: '?' | '$'): Where {
  const values: (string | number)[] = []
  const parts = conditions.map(({ sql, value }) => {
    if (value === undefined) return sql
    values.push(value)
    return sql.replace('?', `${sign}${values.length}`)
  })
  return { sql: parts.join(' AND '), values, next: `${sign}${values.length + 1}` }
}
