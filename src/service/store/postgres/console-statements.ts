/** The statements of what the console reads. */
import { DAY_MS } from '../console-rows.js'
import { ENTRY_COLUMNS, KEY_COLUMNS } from './account-statements.js'
import { type Statement, statementsOf } from './driver.js'

/** Nodes of the version before store the whole prompt. */
const PROMPT = 'left(runs.prompt, 1000)'

const RUNS = `
    SELECT runs.sequence, runs.id, runs.account_id, runs.key_id, model, kind, status, ${PROMPT} AS prompt, aspect_ratio, failure,
      price, runs.created_at, started_at, finished_at, keys.name AS key_name,
      CASE WHEN status = 'succeeded' THEN (
        SELECT json_agg(outputs ORDER BY position) FROM outputs WHERE run_id = runs.id
      ) END AS outputs
    FROM runs LEFT JOIN keys ON keys.id = runs.key_id`
const KEYS = `SELECT ${KEY_COLUMNS} FROM keys JOIN accounts ON accounts.id = keys.account_id`

/** The midnight (UTC) that ends the day of this time. */
const nextDay = (time: string): string => `(${time} / ${DAY_MS} + 1) * ${DAY_MS}`

/** Of a filter's parameter. With the collation "C" only ASCII letters have two cases. */
export const IN_PROMPT = `position(lower(? COLLATE "C") IN lower(${PROMPT} COLLATE "C")) > 0`

/** Planned for the filters and values of each call. */
const unnamed = (text: string): Statement => ({ name: '', text })

export const listRuns = (where: string, limit: string): Statement =>
  unnamed(`${RUNS} WHERE ${where} ORDER BY runs.sequence DESC LIMIT ${limit}`)

/** The first run that is not looked at. */
export const floorOfRuns = (where: string, offset: string): Statement =>
  unnamed(`SELECT sequence FROM runs WHERE ${where} ORDER BY sequence DESC LIMIT 1 OFFSET ${offset}`)

export const listEntries = (where: string, limit: string): Statement =>
  unnamed(`
    SELECT ${ENTRY_COLUMNS}, keys.name AS key_name
    FROM credits JOIN accounts ON accounts.id = credits.account_id LEFT JOIN keys ON keys.id = credits.key_id
    WHERE ${where} ORDER BY credits.sequence DESC LIMIT ${limit}`)

export const CONSOLE_SQL = statementsOf({
  findAccountById: `SELECT name, balance, banned FROM accounts WHERE id = $1`,

  // The sum is explained at the API's findRun.
  findRuns: `${RUNS} WHERE runs.id = ANY ($1::text[]) AND runs.account_id + 0 = $2`,

  latestRun: `SELECT coalesce(max(sequence), 0) AS latest FROM runs WHERE account_id = $1`,

  listLostAttempts: `SELECT started_at, ended_at, result FROM lost_attempts WHERE run_id = $1 ORDER BY id`,

  listAccountKeys: `${KEYS} WHERE keys.account_id = $1 AND keys.id < $2 ORDER BY keys.id DESC LIMIT $3`,

  findAccountKey: `${KEYS} WHERE keys.id = $1 AND keys.account_id = $2`,

  // A range of the index for each day: GROUP BY would take twice as long.
  spendPerDay: `
    WITH RECURSIVE days AS (
      (
        SELECT created_at AS at FROM credits
        WHERE account_id = $1 AND kind <> 'added' AND created_at >= $2 ORDER BY created_at LIMIT 1
      )
      UNION ALL
      SELECT later.* FROM days CROSS JOIN LATERAL (
        SELECT created_at FROM credits
        WHERE account_id = $1 AND kind <> 'added' AND created_at >= ${nextDay('days.at')} ORDER BY created_at LIMIT 1
      ) AS later
    )
    SELECT days.at, spent.credits, spent.runs FROM days CROSS JOIN LATERAL (
      SELECT -sum(amount) AS credits, count(*) FILTER (WHERE amount < 0) AS runs FROM credits
      WHERE account_id = $1 AND kind <> 'added' AND created_at >= days.at AND created_at < ${nextDay('days.at')}
    ) AS spent
    ORDER BY days.at`,
})
