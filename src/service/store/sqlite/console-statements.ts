/** The statements of what the console reads. */
import { KEY_COLUMNS } from './account-statements.js'

const RUNS = 'SELECT runs.*, keys.name AS key_name FROM runs LEFT JOIN keys ON keys.id = runs.key_id'
const KEYS = `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id`

/** Of a filter's parameter; lower and instr know no letters but those of ASCII. */
export const IN_PROMPT = `instr(lower(json_extract(runs.input, '$.prompt')), lower(?)) > 0`

export const listRuns = (where: string, limit: string): string =>
  `${RUNS} WHERE ${where} ORDER BY runs.sequence DESC LIMIT ${limit}`

export const listEntries = (where: string, limit: string): string => `
    SELECT credits.*, accounts.name AS account, keys.name AS key_name
    FROM credits JOIN accounts ON accounts.id = credits.account_id LEFT JOIN keys ON keys.id = credits.key_id
    WHERE ${where} ORDER BY credits.sequence DESC LIMIT ${limit}`

export const CONSOLE_SQL = {
  findAccount: `SELECT name, balance, banned FROM accounts WHERE id = ?1`,

  findRuns: `${RUNS} WHERE runs.id IN (SELECT value FROM json_each(?1)) AND runs.account_id = ?2`,

  latestRun: `SELECT coalesce(max(sequence), 0) AS latest FROM runs WHERE account_id = ?1`,

  listLostAttempts: `SELECT * FROM lost_attempts WHERE run_id = ?1 ORDER BY id`,

  listAccountKeys: `${KEYS} WHERE keys.account_id = ?1 ORDER BY keys.id DESC`,

  findAccountKey: `${KEYS} WHERE keys.id = ?1 AND keys.account_id = ?2`,

  nextSpend: `
    SELECT created_at FROM credits WHERE account_id = ?1 AND created_at >= ?2 AND kind <> 'added'
    ORDER BY created_at LIMIT 1`,

  spendBetween: `
    SELECT ?2 AS at, -sum(amount) AS credits, count(*) FILTER (WHERE kind = 'charge') AS runs
    FROM credits WHERE account_id = ?1 AND created_at >= ?2 AND created_at < ?3 AND kind <> 'added'`,
} as const
