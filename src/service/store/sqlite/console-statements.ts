/** The statements of what the console reads. */
import { KEY_COLUMNS } from './account-statements.js'

/** Only the columns that are needed, on which libsql spends most of its time. */
const RUN_COLUMNS = `
    runs.sequence, runs.id, runs.account_id, key_id, model, kind, status, prompt, aspect_ratio, price, error_code,
      error_message, runs.created_at, started_at, finished_at, keys.name AS key_name`
const NAMED = 'LEFT JOIN keys ON keys.id = key_id'
const KEYS = `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id`

/** Of a filter's parameter; lower and instr know no letters but those of ASCII. */
export const IN_PROMPT = 'instr(lower(runs.prompt), lower(?)) > 0'

// By name, since the planner has no statistics.
export const listRuns = (where: string, limit: string): string => `
    SELECT ${RUN_COLUMNS} FROM runs INDEXED BY runs_of_account ${NAMED}
    WHERE ${where} ORDER BY runs.sequence DESC LIMIT ${limit}`

/** The first run that is not looked at. */
export const floorOfRuns = (where: string, offset: string): string => `
    SELECT sequence FROM runs INDEXED BY runs_of_account WHERE ${where} ORDER BY sequence DESC LIMIT 1 OFFSET ${offset}`

export const listEntries = (where: string, limit: string): string => `
    SELECT credits.*, accounts.name AS account, keys.name AS key_name
    FROM credits JOIN accounts ON accounts.id = credits.account_id LEFT JOIN keys ON keys.id = credits.key_id
    WHERE ${where} ORDER BY credits.sequence DESC LIMIT ${limit}`

export const CONSOLE_SQL = {
  findAccount: `SELECT name, balance, banned FROM accounts WHERE id = ?1`,

  findRuns: `
    SELECT ${RUN_COLUMNS} FROM json_each(?1) AS wanted CROSS JOIN runs ON runs.id = wanted.value ${NAMED}
    WHERE runs.account_id = ?2`,

  outputsOfRuns: `
    SELECT outputs.* FROM json_each(?1) AS wanted CROSS JOIN outputs ON run_id = wanted.value ORDER BY run_id, position`,

  latestRun: `SELECT coalesce(max(sequence), 0) AS latest FROM runs WHERE account_id = ?1`,

  listLostAttempts: `SELECT * FROM lost_attempts WHERE run_id = ?1 ORDER BY id`,

  listAccountKeys: `${KEYS} WHERE keys.account_id = ?1 AND keys.id < ?2 ORDER BY keys.id DESC LIMIT ?3`,

  findAccountKey: `${KEYS} WHERE keys.id = ?1 AND keys.account_id = ?2`,

  nextSpend: `
    SELECT created_at FROM credits WHERE account_id = ?1 AND created_at >= ?2 AND kind <> 'added'
    ORDER BY created_at LIMIT 1`,

  spendBetween: `
    SELECT ?2 AS at, -sum(amount) AS credits, sum(amount < 0) AS runs
    FROM credits WHERE account_id = ?1 AND created_at >= ?2 AND created_at < ?3 AND kind <> 'added'`,
} as const
