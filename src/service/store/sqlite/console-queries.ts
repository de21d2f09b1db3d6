/** What the console reads, on SQLite. */
import type { OpenDatabase, Row } from '../../../host/database.js'
import { type Condition, entryConditions, runConditions, whereOf } from '../console-filters.js'
import {
  accountSummaryOf,
  DAY_MS,
  daySpendOf,
  listedEntryOf,
  listedRunOf,
  lostAttemptOf,
} from '../console-rows.js'
import type { ConsoleStore, DaySpend, ListedRun, RunFilter } from '../console-store.js'
import { keyDetailsOfRow } from '../shared-rows.js'
import { IN_INPUT, IN_PROMPT, listEntries, listRuns, CONSOLE_SQL as SQL } from './console-statements.js'
import { runOfRow } from './rows.js'

const searchConditions = ({ search }: RunFilter): readonly Condition[] =>
  search === undefined
    ? []
    : [
        { sql: IN_INPUT, value: JSON.stringify(search).slice(1, -1) },
        { sql: IN_PROMPT, value: search },
      ]

export function createConsoleStore({ get, all }: Pick<OpenDatabase, 'get' | 'all'>): ConsoleStore {
  function runsOf(rows: readonly Row[]): readonly ListedRun[] {
    const succeeded = rows.filter(({ status }) => status === 'succeeded').map(({ id }) => String(id))
    const outputs = all(SQL.outputsOfRuns, JSON.stringify(succeeded))
    return rows.map((row) =>
      listedRunOf(
        row,
        runOfRow(
          row,
          outputs.filter(({ run_id }) => run_id === row.id),
        ),
      ),
    )
  }

  return {
    async findAccount(id) {
      const row = get(SQL.findAccount, id)
      return row && accountSummaryOf(row)
    },
    async listRuns(filter) {
      const where = whereOf([...runConditions(filter), ...searchConditions(filter)], '?')
      return runsOf(all(listRuns(where.sql, where.next), ...where.values, filter.limit))
    },
    findRuns: async (ids, accountId) => runsOf(all(SQL.findRuns, JSON.stringify(ids), accountId)),
    latestRun: async (accountId) => Number(get(SQL.latestRun, accountId)?.latest),
    listLostAttempts: async (runId) => all(SQL.listLostAttempts, runId).map(lostAttemptOf),
    listAccountKeys: async (accountId) => all(SQL.listAccountKeys, accountId).map(keyDetailsOfRow),
    async findAccountKey(id, accountId) {
      const row = get(SQL.findAccountKey, id, accountId)
      return row && keyDetailsOfRow(row)
    },
    async listAccountEntries(filter) {
      const where = whereOf(entryConditions(filter), '?')
      return all(listEntries(where.sql, where.next), ...where.values, filter.limit).map(listedEntryOf)
    },
    async spendPerDay(accountId, fromMs) {
      const days: DaySpend[] = []
      // A range of the index for each day. GROUP BY would sort all entries.
      for (let at = nextSpend(fromMs); at !== undefined; ) {
        const endMs = (Math.floor(at / DAY_MS) + 1) * DAY_MS
        const row = get(SQL.spendBetween, accountId, at, endMs)
        if (row !== undefined) days.push(daySpendOf(row))
        at = nextSpend(endMs)
      }
      return days

      function nextSpend(ms: number): number | undefined {
        const row = get(SQL.nextSpend, accountId, ms)
        return row && Number(row.created_at)
      }
    },
  }
}
